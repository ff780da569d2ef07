"""Tile programs to per-thread code: every block-level vector becomes a 1-D vector of one thread's registers.

    func.func @k(%x: memref<?x256xf32>, %o: ..., %d0: index) attributes {xt.kernel} {
      scf.forall (%i) in (%d0) { %t = vector.transfer_read %x[...] {xcc.layout = [...]} ... } }
    ->
    gpu.module @k_gpu {
      gpu.func @k(%x: memref<?x256xf32>, %o: ..., %d0: index) kernel
          attributes {xcc.grid = "d0", known_block_size = [128, 1, 1], xcc.shared_bytes = 0} { per-thread code } }

Each top-level scf.forall is a gpu.func of its own: they run in order (`@k`, then `@k_1`, ...). The grid is
one-dimensional; ``xcc.grid`` gives its size as an expression of the kernel's symbols. A loop kernel (``xcc.loops``)
gives each iteration of its scf.forall to one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xcc import symbolic
from xcc._mlir import arith_d, gpu_d, ir, scf_d, vector_d
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu import distribute_compute, distribute_memory, warpgroup
from xcc.passes.gpu.analysis import forall_bounds, symbolic_value
from xcc.passes.gpu.assign_layouts import CONVERT, LAYOUT, config_int, is_elementwise, is_vector
from xcc.passes.gpu.distribute_scan import scan
from xcc.passes.gpu.layout import Layout
from xcc.passes.gpu.loads_ahead import LoadsAhead, loads_ahead
from xcc.passes.gpu.pieces import Pieces
from xcc.passes.gpu.pipeline_loads import pipelined_loop
from xcc.passes.gpu.rounds import Rounds
from xcc.passes.gpu.staged_tile import StagedTile
from xcc.passes.gpu.thread_code import (
    ANYTHING,
    ThreadCode,
    from_registers,
    guarded,
    index,
    register_vector,
    select_registers,
)
from xcc.passes.linalg.by_size import LAUNCHED, OF
from xcc.passes.xt.split_beside import PART

BUFFERS = ("xt.symbols", "xt.arg_dims", "xt.result_dims", "xt.scratch_dims", "xcc.scratch")
LARGE = 512         # threads of a workgroup where there are many
PRODUCT = "xcc.product"     # on a gpu.func: it has contractions
FORALL_END = ("scf.forall.in_parallel", "scf.in_parallel")


@register_pass
@dataclass(frozen=True)
class Distribute(Pass):
    """Turns tile programs with layouts, and loop kernels, into gpu.func kernels of per-thread code."""

    name: ClassVar[str] = "distribute"
    threads: int = 0             # threads a workgroup where the kernel's config has none; 0: 128

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context, ir.Location.unknown():
            for func in list(module.body.operations):
                if func.operation.name == "func.func" and "xt.kernel" in func.operation.attributes:
                    with func.operation.location:
                        _distribute(func, ctx.chip, config_int(func, "threads", self.threads or 128))
                    func.operation.erase()
            _move_tables(module)


def _distribute(func: Any, chip: Any, threads: int) -> None:
    name = ir.StringAttr(func.operation.attributes["sym_name"]).value
    of = ir.StringAttr(func.operation.attributes[OF]).value if OF in func.operation.attributes else name
    body = _gpu_module(func.operation, f"{of}_gpu")
    loops = "xcc.loops" in func.operation.attributes
    for i, phase in enumerate(phases_of(func)):
        width = max(threads, _loop_threads(phase[0], chip)) if loops else threads
        with ir.InsertionPoint(body):
            KernelBuilder(func, chip, width).build(f"{name}_{i}" if i else name, phase)


def _loop_threads(forall: Any, chip: Any) -> int:
    """Threads of a workgroup of a loop kernel: an H100 begins 0.8 workgroups a nanosecond, however small, so that many
    iterations take large ones."""
    if forall.name != "scf.forall":
        return 0
    sizes = [high - low for low, high, _ in zip(*forall_bounds(forall), strict=True)
             if isinstance(low, int) and isinstance(high, int)]
    return LARGE if math.prod(sizes) >= 4 * LARGE * (chip.cores or 64) else 0


def _gpu_module(func: Any, name: str) -> Any:
    """The block of the gpu.module `name`, which is made ahead of `func` if it is not there."""
    for op in func.parent.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op.operation.regions[0].blocks[0]
    with ir.InsertionPoint(func):
        target = ir.Operation.create("gpu.module", regions=1, attributes={"sym_name": ir.StringAttr.get(name)})
    return target.regions[0].blocks.append()


def _move_tables(module: Any) -> None:
    """Constant tables belong to the device: each gpu.module gets those that its kernels read."""
    tables = [op for op in module.body.operations if op.operation.name == "memref.global"]
    targets = [op for op in module.body.operations if op.operation.name == "gpu.module"]
    for target in targets:
        read: set[str] = set()

        def visit(op: Any, read: set[str] = read) -> Any:
            if op.name == "memref.get_global":
                read.add(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
            return ir.WalkResult.ADVANCE

        target.operation.walk(visit)
        for table in tables:
            if ir.StringAttr(table.attributes["sym_name"]).value in read:
                table.operation.clone(ip=ir.InsertionPoint.at_block_begin(target.regions[0].blocks[0]))
    if targets:
        for table in tables:
            table.operation.erase()


def phases_of(func: Any) -> list[list[Any]]:
    """What each launch runs: one top-level scf.forall, or a run of top-level operations that write memory.

    The latter are what is left of a forall of one iteration: a launch of one workgroup.
    """
    phases: list[list[Any]] = []
    for op in func.operation.regions[0].blocks[0].operations:
        if op.operation.name == "scf.forall":
            phases.append([op.operation])
        elif writes_memory(op.operation):
            if phases and phases[-1][0].name != "scf.forall":
                phases[-1].append(op.operation)
            else:
                phases.append([op.operation])
    return phases


def writes_memory(op: Any) -> bool:
    """Whether `op` or an operation inside it stores to memory."""
    if op.name in ("vector.transfer_write", "vector.scatter", "memref.store", "memref.atomic_rmw"):
        return True
    return any(writes_memory(inner.operation) for region in op.regions for block in region.blocks
               for inner in block.operations)


def has_product(op: Any) -> bool:
    """Whether `op` is a contraction or has one inside."""
    return op.name == "vector.contract" or any(has_product(inner.operation) for region in op.regions
                                               for block in region.blocks for inner in block.operations)


def kernel_symbols(func: Any) -> dict[Any, symbolic.Dim]:
    """The trailing index arguments of a kernel as symbols."""
    attributes = func.operation.attributes
    arguments = list(func.operation.regions[0].blocks[0].arguments)
    names = [s.value for s in attributes["xt.symbols"]] if "xt.symbols" in attributes else \
        [f"d{i}" for i in range(sum(isinstance(a.type, ir.IndexType) for a in arguments))]
    return {a: symbolic.sym(n) for a, n in zip(arguments[len(arguments) - len(names):], names, strict=True)}


class KernelBuilder:
    """Builds one gpu.func. `values` maps values of the tile program to those of the per-thread code."""

    def __init__(self, func: Any, chip: Any, threads: int) -> None:
        self.func, self.chip, self.threads = func, chip, threads
        self.values: dict[Any, Any] = {}
        self.layouts: dict[Any, Layout] = {}
        self.stages = config_int(func, "stages", 0)
        self.pipelined: dict[Any, LoadsAhead | None] = {}    # by loop
        self.staged: dict[Any, StagedTile] = {}     # by the operand of a contraction that they replace
        self.deferred: list[Callable[[], None]] = []    # what may be emitted between a contraction's instructions
        self.pieces = Pieces(self)
        self.in_flight = False      # contractions of warpgroups run on into the next step of the loop around
        self.holds_nothing = False  # no loads of a later step wait in registers while a loop's step computes
        self.late: dict[Any, Any] = {}  # values that such contractions still compute, waited for when they are used
        self.rounds: Rounds | None = None   # the tiles that this workgroup computes one after the other
        self.code: ThreadCode

    def build(self, name: str, phase: list[Any]) -> None:
        """Emits the operations of `phase` and the others before them, which only compute values."""
        source = self.func.operation.regions[0].blocks[0]
        types = [a.type for a in source.arguments]
        attributes = self.func.operation.attributes
        kept = {k: attributes[k] for k in (*BUFFERS, PART) if k in attributes}
        kernel = gpu_d.GPUFuncOp(ir.FunctionType.get(types, []), name, kernel=True,
                                 known_block_size=[self.threads, 1, 1])
        for key, value in kept.items():
            kernel.operation.attributes[key] = value
        entry = kernel.operation.regions[0].blocks[0] if len(kernel.operation.regions[0].blocks) else \
            kernel.operation.regions[0].blocks.append(*types)
        for old, new in zip(source.arguments, entry.arguments, strict=True):
            self.values[old] = new
        self.code = ThreadCode(entry, self.chip, self.finish)
        with ir.InsertionPoint(entry):
            grid = self.body(source, phase)
            gpu_d.return_([])
        if LAUNCHED in attributes:
            grid = grid * symbolic.parse(ir.StringAttr(attributes[LAUNCHED]).value)
        if any(has_product(op) for op in phase):
            kernel.operation.attributes[PRODUCT] = ir.UnitAttr.get()
        kernel.operation.attributes["xcc.grid"] = ir.StringAttr.get(str(grid))
        kernel.operation.attributes["xcc.shared_bytes"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64),
                                                                              self.code.shared_bytes)

    def body(self, source: Any, phase: list[Any]) -> symbolic.Dim:
        others = [op.operation for op in source.operations if op.operation.name not in ("scf.forall", "func.return")
                  and (op.operation in phase or not writes_memory(op.operation))]
        if phase[0].name == "scf.forall":
            before = {op.operation for op in _before(source, phase[0])}
            for op in others:
                if op in before:
                    self.emit(op)
            return self.grid(phase[0])
        last = {op.operation for op in _before(source, phase[-1])} | {phase[-1]}

        def emit() -> None:
            for op in others:
                if op in last:
                    self.emit(op)

        guarded(self.only_thread() if self.loops else None, emit)
        return 1

    @property
    def loops(self) -> bool:
        return "xcc.loops" in self.func.operation.attributes

    def only_thread(self) -> Any:
        return arith_d.cmpi(arith_d.CmpIPredicate.eq, self.code.thread, index(0))

    def grid(self, forall: Any) -> symbolic.Dim:
        """Emits the body of `forall` for this workgroup or thread; returns the number of workgroups."""
        loops = self.loops
        symbols = kernel_symbols(self.func)
        lower, upper, step = forall_bounds(forall)
        counts, sizes = [], []
        for lo, up, by in zip(lower, upper, step, strict=True):
            low, high, stride = (symbolic_value(v, symbols) for v in (lo, up, by))
            counts.append(symbolic.ceildiv(high - low, stride))
            sizes.append(self.trips(lo, up, by))
        number = gpu_d.block_id(gpu_d.Dimension.x)
        if loops:
            number = arith_d.addi(arith_d.muli(number, index(self.threads)), self.code.thread)
        body = forall.regions[0].blocks[0]

        def place(number: Any) -> None:
            """Gives the body's arguments the coordinates of tile `number`."""
            rest = number
            coords: list[Any] = []
            group = config_int(self.func, "group", 0)
            outer = sizes
            if group > 1 and len(sizes) > 1:
                outer = sizes[:-2]
                plane = arith_d.muli(sizes[-2], sizes[-1])
                inside = arith_d.remui(rest, plane) if outer else rest
                rest = arith_d.divui(rest, plane) if outer else rest
                coords += reversed(grouped(inside, sizes[-2], sizes[-1], group))
            for size in reversed(outer[1:]):
                coords.append(arith_d.remui(rest, size))
                rest = arith_d.divui(rest, size)
            if outer:
                coords.append(rest)
            for arg, c, lo, by in zip(body.arguments, reversed(coords), lower, step, strict=False):
                value = c if by == 1 else arith_d.muli(c, self.bound(by))
                self.values[arg] = value if lo == 0 else arith_d.addi(value, self.bound(lo))

        total = symbolic.product(counts)
        count = sizes[0] if sizes else index(1)
        for size in sizes[1:]:
            count = arith_d.muli(count, size)
        if not loops:
            workers = config_int(self.func, "persistent", 0)
            self.rounds = Rounds.of(self, body, place, count, workers) if workers else None
            if self.rounds is not None:
                self.rounds.emit()
                return symbolic.dim_min(total, workers)
            place(number)
            self.block(body)
            return total
        inside = scf_d.IfOp(arith_d.cmpi(arith_d.CmpIPredicate.ult, number, count))
        with ir.InsertionPoint(inside.then_block):
            place(number)
            self.block(body)
            scf_d.yield_([])
        return symbolic.ceildiv(total, self.threads)

    def bound(self, value: Any) -> Any:
        return index(value) if isinstance(value, int) else self.values[value]

    def trips(self, lower: Any, upper: Any, step: Any) -> Any:
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            return index(-((lower - upper) // step))
        extent = self.bound(upper) if lower == 0 else arith_d.subi(self.bound(upper), self.bound(lower))
        return extent if step == 1 else arith_d.ceildivui(extent, self.bound(step))

    # -- values -------------------------------------------------------------------------------------------------

    def layout(self, value: Any) -> Layout:
        """The layout assigned to a vector of the tile program."""
        if value not in self.layouts:
            owner = value.owner
            if isinstance(owner, ir.Block):
                parent = owner.owner.operation
                self.layouts[value] = self.layout(parent.results[ir.BlockArgument(value).arg_number - 1])
            else:
                op = owner.operation
                if LAYOUT not in op.attributes:
                    raise CompilerBug(f"{op.name} has no layout: run assign-layouts before distribute")
                vectors = [r for r in op.results if is_vector(r)]
                for r, text in zip(vectors, op.attributes[LAYOUT], strict=True):
                    self.layouts[r] = Layout.parse(text.value)
        return self.layouts[value]

    def get(self, value: Any) -> Any:
        """The per-thread value of a value of the tile program."""
        if value in self.late:
            self.finish()
        return self.values[value]

    def finish(self) -> None:
        """Waits for what contractions still compute, and read in shared memory."""
        for value, running in self.late.items():
            self.values[value] = warpgroup.wait([running])[0]
        self.late.clear()

    def type_of(self, value: Any) -> Any:
        return register_vector(self.layout(value).registers, ir.VectorType(value.type).element_type) \
            if is_vector(value) else value.type

    def run_deferred(self) -> None:
        """Emits what waits to be emitted between other instructions."""
        while self.deferred:
            self.deferred.pop(0)()

    # -- operations ---------------------------------------------------------------------------------------------

    def block(self, block: Any) -> None:
        for op in block.operations:
            if op.operation.name not in FORALL_END:
                self.emit(op.operation)

    def emit(self, op: Any) -> None:
        """Emits the per-thread form of one operation of the tile program."""
        if len(op.regions):
            self.run_deferred()
            self.finish()
        if self.pieces.defer(op):
            return
        if op.name in _HANDLERS:
            _HANDLERS[op.name](self, op)
        elif op.name == "scf.for":
            self.for_loop(op)
        elif op.name == "scf.if":
            self.branch(op)
        elif op.name == "scf.yield":
            self.scalar(op)
        elif op.name == "memref.store" and not self.loops:
            distribute_memory.uniform_store(self, op)
        elif op.name == "arith.constant" and is_vector(op.results[0]):
            self.constant(op)
        elif not self.loops and any(is_vector(v) for v in [*op.operands, *op.results]):
            if not is_elementwise(op):
                raise CompilerBug(f"{op.name} has no distribution to threads")
            self.elementwise(op)
        else:
            self.scalar(op)

    def scalar(self, op: Any) -> None:
        """Copies an operation on uniform values, with its regions."""
        copy = ir.Operation.create(op.name, results=[r.type for r in op.results],
                                   operands=[self.get(v) for v in op.operands],
                                   attributes=attributes_of(op), regions=len(op.regions))
        for old, new in zip(op.results, copy.results, strict=True):
            self.values[old] = new
        for old_region, new_region in zip(op.regions, copy.regions, strict=True):
            for old_block in old_region.blocks:
                new_block = new_region.blocks.append(*[a.type for a in old_block.arguments])
                for a, b in zip(old_block.arguments, new_block.arguments, strict=True):
                    self.values[a] = b
                with ir.InsertionPoint(new_block):
                    self.code.keep_reads()
                    self.block(old_block)
        if len(op.regions):
            self.code.keep_reads()

    def elementwise(self, op: Any) -> None:
        operands = [self.get(v) for v in op.operands]
        copy = ir.Operation.create(op.name, results=[self.type_of(r) for r in op.results], operands=operands,
                                   attributes=attributes_of(op))
        for old, new in zip(op.results, copy.results, strict=True):
            self.values[old] = new

    @staticmethod
    def elementwise_of(op: Any, operands: list[Any], registers: int) -> Any:
        """`op`, which has one result, on vectors of some of its registers."""
        kind = register_vector(registers, ir.VectorType(op.results[0].type).element_type)
        return ir.Operation.create(op.name, results=[kind], operands=operands, attributes=attributes_of(op)).result

    def constant(self, op: Any) -> None:
        result = op.results[0]
        data = ir.DenseElementsAttr(op.attributes["value"])
        kind = self.type_of(result)
        if data.is_splat:
            self.values[result] = arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, data.get_splat_value()))
            return
        layout = self.layout(result)
        size = 1
        for s in layout.shape:
            size *= s
        table = vector_d.shape_cast(register_vector(size, kind.element_type),
                                    arith_d.constant(result.type, op.attributes["value"]))
        scalars = []
        for r in range(layout.registers):
            flat = index(0)
            for d, s in enumerate(layout.shape):
                flat = arith_d.addi(arith_d.muli(flat, index(s)), self.code.coordinate(layout, r, d))
            scalars.append(vector_d.extract(table, [flat], [ir.ShapedType.get_dynamic_size()]))
        self.values[result] = from_registers(scalars)

    def plan_of(self, loop: Any) -> LoadsAhead | None:
        """What the scf.for `loop` keeps in shared memory."""
        if loop not in self.pipelined:
            self.pipelined[loop] = loads_ahead(self, loop) if self.stages > 1 else None
        return self.pipelined[loop]

    def for_loop(self, op: Any) -> None:
        if self.rounds is not None and op == self.rounds.loop.op:
            return self.rounds.loop.emit_round(self.rounds)
        plan = self.plan_of(op)
        if plan is not None:
            return pipelined_loop(self, op, plan)
        lower, upper, step, *init = [self.get(v) for v in op.operands]
        loop = scf_d.ForOp(lower, upper, step, init)
        old = op.regions[0].blocks[0]
        for a, b in zip(old.arguments, loop.body.arguments, strict=True):
            self.values[a] = b
        self.code.reads = ANYTHING      # by the step before
        with ir.InsertionPoint(loop.body):
            self.block(old)
        self.code.keep_reads()
        for a, b in zip(op.results, loop.operation.results, strict=True):
            self.values[a] = b
        return None

    def branch(self, op: Any) -> None:
        copy = ir.Operation.create("scf.if", results=[self.type_of(r) for r in op.results],
                                   operands=[self.get(op.operands[0])], regions=2)
        for old_region, new_region in zip(op.regions, copy.regions, strict=True):
            for old_block in old_region.blocks:
                with ir.InsertionPoint(new_region.blocks.append()):
                    self.code.keep_reads()
                    self.block(old_block)
        self.code.keep_reads()
        for old, new in zip(op.results, copy.results, strict=True):
            self.values[old] = new


def grouped(number: Any, rows: Any, columns: Any, group: int) -> tuple[Any, Any]:
    """Row and column of a tile when workgroups walk `group` rows of a column, then the next column.

    Workgroups that run at the same time then share tiles of both operands in the L2 cache.
    """
    band = arith_d.muli(columns, index(group))
    first = arith_d.muli(arith_d.divui(number, band), index(group))
    inside = arith_d.remui(number, band)
    height = arith_d.minui(arith_d.subi(rows, first), index(group))
    return arith_d.addi(first, arith_d.remui(inside, height)), arith_d.divui(inside, height)


def attributes_of(op: Any) -> dict[str, Any]:
    """The attributes of `op` but for its layout."""
    return {name: op.attributes[name] for name in op.attributes if name != LAYOUT}


def _before(block: Any, op: Any) -> list[Any]:
    """The operations of `block` ahead of `op`."""
    out = []
    for other in block.operations:
        if other.operation == op:
            break
        out.append(other)
    return out


def _view(select: Any) -> Any:
    """A handler of an op that renames positions: `select(op, target layout, position)` is the operand's position."""
    def handle(k: KernelBuilder, op: Any) -> None:
        source = op.operands[0]
        target = k.layout(op.results[0])
        if not is_vector(source):
            k.values[op.results[0]] = vector_d.broadcast(k.type_of(op.results[0]), k.get(source))
            return
        layout = k.layout(source)
        held = {layout.at(register=r): r for r in reversed(range(layout.registers))}
        chosen = [held[select(op, layout, target, target.at(register=r))] for r in range(target.registers)]
        k.values[op.results[0]] = select_registers(k.get(source), chosen)
    return handle


def _broadcast_position(op: Any, source: Layout, target: Layout, position: tuple[int, ...]) -> tuple[int, ...]:
    del op
    lead = len(target.shape) - len(source.shape)
    return tuple(0 if s == 1 else c for s, c in zip(source.shape, position[lead:], strict=True))


def _transpose_position(op: Any, source: Layout, target: Layout, position: tuple[int, ...]) -> tuple[int, ...]:
    del source, target
    order = list(op.attributes["permutation"])
    return tuple(position[order.index(d)] for d in range(len(order)))


def _reshape_position(op: Any, source: Layout, target: Layout, position: tuple[int, ...]) -> tuple[int, ...]:
    del op
    return source.unflatten(target.flatten(position))


def _step(k: KernelBuilder, op: Any) -> None:
    layout = k.layout(op.results[0])
    k.values[op.results[0]] = from_registers([k.code.coordinate(layout, r, 0) for r in range(layout.registers)])


def _mask(k: KernelBuilder, op: Any) -> None:
    """create_mask and constant_mask: one comparison for each coordinate that differs, joined."""
    layout = k.layout(op.results[0])
    if op.name == "vector.create_mask":
        bounds = [k.get(v) for v in op.operands]
    else:
        bounds = [index(n) for n in op.attributes["mask_dim_sizes"]]
    tests: dict[tuple[int, int], Any] = {}
    out = []
    for r in range(layout.registers):
        joined = None
        for d, bound in enumerate(bounds):
            key = (d, layout.at(register=r)[d])
            if key not in tests:
                tests[key] = arith_d.cmpi(arith_d.CmpIPredicate.slt, k.code.coordinate(layout, r, d), bound)
            joined = tests[key] if joined is None else arith_d.andi(joined, tests[key])
        out.append(joined)
    k.values[op.results[0]] = from_registers(out)


def _convert(k: KernelBuilder, op: Any) -> None:
    source = op.operands[0]
    result = op.results[0]
    if result in k.staged:
        return          # its contractions read it from there
    loops = {u.owner.operation.parent.operation for u in result.uses}
    if loops and all(loop.name == "scf.for" and (plan := k.plan_of(loop)) is not None and result in dict(plan.staged)
                     for loop in loops):
        return          # the loop writes it there
    k.values[op.results[0]] = k.code.convert(k.get(source), k.layout(source), k.layout(op.results[0]))


_HANDLERS: dict[str, Any] = {
    CONVERT: _convert,
    "vector.broadcast": _view(_broadcast_position),
    "vector.constant_mask": _mask,
    "vector.contract": distribute_compute.contract,
    "vector.create_mask": _mask,
    "vector.gather": distribute_memory.gather,
    "vector.multi_reduction": distribute_compute.reduction,
    "vector.scan": scan,
    "vector.scatter": distribute_memory.scatter,
    "vector.shape_cast": _view(_reshape_position),
    "vector.step": _step,
    "vector.transfer_read": distribute_memory.read,
    "vector.transfer_write": distribute_memory.write,
    "vector.transpose": _view(_transpose_position),
}

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

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, arith_d, gpu_d, ir
from xcc.diagnostics import UserError
from xcc.dialects.tile.program import SMALL
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.index_values import forall_bounds
from xcc.passes.gpu.layout.registers import guarded
from xcc.passes.gpu.layout.tile_kernel import TileKernel
from xcc.passes.gpu.layout.tile_ops import config_int, int_attribute, set_int
from xcc.passes.gpu.thread.grid import INSTANCES, Grid, instances_problem
from xcc.passes.gpu.thread.kernel_builder import KernelBuilder
from xcc.passes.linalg.schedule.by_size import LAUNCHED, OF
from xcc.passes.shared.attributes import MAY_ALIAS, PART, RESIDENT
from xcc.passes.shared.updates import UPDATES
from xcc.passes.shared.values import index
from xcc.passes.walk import ops_where
from xcc.targets.base import Chip

BUFFERS = (MAY_ALIAS, SMALL, "xt.symbols", "xt.arg_dims", "xt.result_dims", "xt.scratch_dims", "xcc.scratch")
LARGE = 512         # threads of a workgroup where there are many
PRODUCT = "xcc.product"     # on a gpu.func: it has contractions


@register_pass
class Distribute(Pass):
    """Turns tile programs with layouts, and loop kernels, into gpu.func kernels of per-thread code."""

    threads: int = 0             # threads a workgroup where the kernel's config has none; 0: 128

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in list(module.body.operations):
            if func.operation.name == "func.func" and "xt.kernel" in func.operation.attributes:
                with func.operation.location:
                    _distribute(func, ctx.chip, config_int(func, "threads", self.threads or 128))
                func.operation.erase()
        _move_tables(module)


def _distribute(func: Operation, chip: Chip, threads: int) -> None:
    name = ir.StringAttr(func.operation.attributes["sym_name"]).value
    of = ir.StringAttr(func.operation.attributes[OF]).value if OF in func.operation.attributes else name
    body = _gpu_module(func.operation, f"{of}_gpu")
    loops = "xcc.loops" in func.operation.attributes
    for i, phase in enumerate(phases_of(func)):
        width = max(threads, _loop_threads(phase[0], chip)) if loops else threads
        with ir.InsertionPoint(body):
            _launch(func, f"{name}_{i}" if i else name, phase, chip, width)


def _loop_threads(forall: Operation, chip: Chip) -> int:
    """Threads of a workgroup of a loop kernel: an H100 begins 0.8 workgroups a nanosecond, however small, so that many
    iterations take large ones."""
    if forall.name != "scf.forall":
        return 0
    sizes = [high - low for low, high, _ in zip(*forall_bounds(forall), strict=True)
             if isinstance(low, int) and isinstance(high, int)]
    return LARGE if math.prod(sizes) >= 4 * LARGE * chip.cores else 0


def _gpu_module(func: Operation, name: str) -> Block:
    """The block of the gpu.module `name`, which is made ahead of `func` if it is not there."""
    for op in func.parent.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op.operation.regions[0].blocks[0]
    with ir.InsertionPoint(func):
        target = ir.Operation.create("gpu.module", regions=1, attributes={"sym_name": ir.StringAttr.get(name)})
    return target.regions[0].blocks.append()


def _move_tables(module: Module) -> None:
    """Constant tables belong to the device: each gpu.module gets those that its kernels read."""
    tables = [op for op in module.body.operations if op.operation.name == "memref.global"]
    targets = [op for op in module.body.operations if op.operation.name == "gpu.module"]
    for target in targets:
        read = {ir.FlatSymbolRefAttr(op.attributes["name"]).value
                for op in ops_where(target, lambda op: op.name == "memref.get_global")}
        for table in tables:
            if ir.StringAttr(table.attributes["sym_name"]).value in read:
                table.operation.clone(ip=ir.InsertionPoint.at_block_begin(target.regions[0].blocks[0]))
    if targets:
        for table in tables:
            table.operation.erase()


def phases_of(func: Operation) -> list[list[Operation]]:
    """What each launch runs: one top-level scf.forall, or a run of top-level operations that write memory.

    The latter are what is left of a forall of one iteration: a launch of one workgroup.
    """
    phases: list[list[Operation]] = []
    for op in func.operation.regions[0].blocks[0].operations:
        if op.operation.name == "scf.forall":
            phases.append([op.operation])
        elif writes_memory(op.operation):
            if phases and phases[-1][0].name != "scf.forall":
                phases[-1].append(op.operation)
            else:
                phases.append([op.operation])
    return phases


def writes_memory(op: Operation) -> bool:
    """Whether `op` or an operation inside it stores to memory."""
    if op.name in ("vector.transfer_write", "vector.scatter", "memref.store", "memref.atomic_rmw", *UPDATES):
        return True
    return any(writes_memory(inner.operation) for region in op.regions for block in region.blocks
               for inner in block.operations)


def has_product(op: Operation) -> bool:
    """Whether `op` is a contraction or has one inside."""
    return op.name == "vector.contract" or any(has_product(inner.operation) for region in op.regions
                                               for block in region.blocks for inner in block.operations)


def _launch(func: Operation, name: str, phase: list[Operation], chip: Chip, threads: int) -> None:
    """The gpu.func of the operations of `phase` and of the others before them, which only compute values."""
    source = func.operation.regions[0].blocks[0]
    types = [a.type for a in source.arguments]
    attributes = func.operation.attributes
    instances = _instances(func, phase[0], chip, threads)
    kernel = gpu_d.GPUFuncOp(ir.FunctionType.get(types, []), name, kernel=True,
                             known_block_size=[threads * instances, 1, 1])
    for key in (*BUFFERS, PART):
        if key in attributes:
            kernel.operation.attributes[key] = attributes[key]
    resident = config_int(func, "resident", 0)
    if resident:
        set_int(kernel.operation, RESIDENT, resident)
    blocks = kernel.operation.regions[0].blocks
    entry = blocks[0] if len(blocks) else blocks.append(*types)
    k = KernelBuilder(func, chip, threads, entry, instances)
    with ir.InsertionPoint(entry):
        grid = _emit(k, source, phase)
        gpu_d.return_([])
    k.shared.close()
    if LAUNCHED in attributes:
        grid = grid * symbolic.parse(ir.StringAttr(attributes[LAUNCHED]).value)
    if any(has_product(op) for op in phase):
        kernel.operation.attributes[PRODUCT] = ir.UnitAttr.get()
    kernel.operation.attributes["xcc.grid"] = ir.StringAttr.get(str(grid))
    kernel.operation.attributes["xcc.shared_bytes"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64),
                                                                         k.shared.all_bytes)


def _instances(func: Operation, forall: Operation, chip: Chip, threads: int) -> int:
    """Iterations of `forall` that a workgroup computes."""
    instances = int_attribute(forall, INSTANCES) if INSTANCES in forall.attributes else 1
    problem = instances_problem(TileKernel(func, chip, threads), forall, instances) if instances != 1 else ""
    if problem:
        raise UserError(f"{forall.location}: {INSTANCES} cannot be obeyed: {problem}")
    return instances


def _emit(k: KernelBuilder, source: Block, phase: list[Operation]) -> symbolic.Dim:
    """The code of a launch; returns the number of its workgroups."""
    others = [op.operation for op in source.operations if op.operation.name not in ("scf.forall", "func.return")
              and (op.operation in phase or not writes_memory(op.operation))]
    if phase[0].name == "scf.forall":
        before = _before(source, phase[0])
        for op in others:
            if op in before:
                k.emit(op)
        return Grid(k, phase[0]).emit()
    wanted = _before(source, phase[-1]) | {phase[-1]}

    def emit() -> None:
        for op in others:
            if op in wanted:
                k.emit(op)

    first = arith_d.cmpi(arith_d.CmpIPredicate.eq, k.code.thread, index(0)) if k.loops else None
    guarded(first, emit)
    return 1


def _before(block: Block, op: Operation) -> set[Operation]:
    """The operations of `block` ahead of `op`."""
    out: set[Operation] = set()
    for other in block.operations:
        if other.operation == op:
            break
        out.add(other.operation)
    return out

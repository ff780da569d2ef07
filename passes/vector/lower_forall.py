"""lower-forall: scf.forall as loops, or as calls of the thread pool where the kernel's configuration asks for it.

    scf.forall (%i, %j) in (%n, 2) {...} {xcc.parallel}   becomes
    llvm.call @xcc_parallel(@k__p0, %slots, %total)       and
    llvm.func @k__p0(%slots, %begin, %end) { scf.for %t = %begin to %end {...} }

`slots` holds the kernel's arguments, eight bytes each; whatever else the body needs is computed again in it. A buffer
on the stack that a body allocates is its thread's, one for all turns.
"""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Block, InsertionPoint, Module, Operation, Value, WalkResult, ir, owner_op
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import MACHINE
from xcc.passes.shared.values import index, op
from xcc.passes.walk import ops_where

_DYNAMIC = -(1 << 63)


@register_pass
class LowerForall(Pass):
    """Outermost foralls marked ``xcc.parallel`` run on the thread pool, all others become scf.for. After kernel-abi."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for f in list(module.body.operations):
            if f.operation.name == "func.func" and len(f.regions[0].blocks):
                _outline_parallel(module, f)
        _make_loops(module)


def _outline_parallel(module: Module, f: Operation) -> None:
    parallel = [o for o in _outermost(f.regions[0].blocks[0]) if "xcc.parallel" in o.attributes]
    for count, o in enumerate(parallel):
        _outline(module, f, o, count)


def _outermost(block: Block) -> list[Operation]:
    """The foralls of `block`, of branches in it (``join-sizes``), too."""
    found: list[Operation] = []
    for o in (o.operation for o in block.operations):
        if o.name == "scf.forall":
            found.append(o)
        elif o.name == "scf.if":
            found += [x for region in o.regions for inner in region.blocks for x in _outermost(inner)]
    return found


def _make_loops(module: Module) -> None:
    for o in ops_where(module, lambda x: x.name == "scf.forall"):
        _serial(o)
    for o in module.body.operations:
        if o.operation.name in ("func.func", "llvm.func") and len(o.regions[0].blocks):
            _buffers_first(o)


def _buffers_first(f: Operation) -> None:
    """Buffers on the stack go to the start of the function: in a loop each turn would take more of it."""
    first = next(iter(f.regions[0].blocks[0].operations)).operation
    for x in ops_where(f, lambda x: x.name == "memref.alloca", outer_first=True):
        if not len(x.operands) and x != first:
            x.move_before(first)


def _bounds(o: Operation) -> list[tuple[Value, Value, Value]]:
    """(lower, upper, step) of each dimension as index values, built at the insertion point."""
    sizes = list(ir.DenseI32ArrayAttr(o.attributes["operandSegmentSizes"]))
    operands = iter(list(o.operands)[:sum(sizes[:3])])
    columns = []
    for name in ("staticLowerBound", "staticUpperBound", "staticStep"):
        static = ir.DenseI64ArrayAttr(o.attributes[name])
        columns.append([next(operands) if v == _DYNAMIC else index(v) for v in static])
    return list(zip(*columns, strict=True))


def _trips(lower: Value, upper: Value, step: Value) -> Value:
    span = op("arith.maxsi", [lower.type], [op("arith.subi", [lower.type], [upper, lower]), index(0)])
    return op("arith.ceildivsi", [lower.type], [span, step])


def _loop(lower: Value, upper: Value, step: Value) -> Block:
    """An empty scf.for; returns its body block, ended by a yield."""
    loop = ir.Operation.create("scf.for", operands=[lower, upper, step], regions=1)
    body = loop.regions[0].blocks.append(ir.IndexType.get())
    with ir.InsertionPoint(body):
        op("scf.yield", [], [])
    return body


def _move_body(o: Operation, block: Block, ivs: list[Value]) -> None:
    """Moves the body of the forall `o` before the terminator of `block`, and erases `o`."""
    old = o.regions[0].blocks[0]
    anchor = list(block.operations)[-1]
    for arg, iv in zip(list(old.arguments), ivs, strict=True):
        arg.replace_all_uses_with(iv)
    for x in [x.operation for x in old.operations][:-1]:
        x.move_before(anchor)
    o.erase()


def _serial(o: Operation) -> None:
    point = ir.InsertionPoint(o)
    _hoist_buffers(o.regions[0].blocks[0], o)
    ivs = []
    block: Block | None = None
    for lower, upper, step in _with(point, lambda: _bounds(o)):
        with point:
            block = _loop(lower, upper, step)
        ivs.append(block.arguments[0])
        point = ir.InsertionPoint.at_block_terminator(block)
    assert block is not None
    _move_body(o, block, ivs)


def _with(point: InsertionPoint,
          make: Callable[[], list[tuple[Value, Value, Value]]]) -> list[tuple[Value, Value, Value]]:
    with point:
        return make()


def _outline(module: Module, f: Operation, o: Operation, number: int) -> None:
    name = f"{ir.StringAttr(f.attributes['sym_name']).value}__p{number}"
    ptr, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(o):
        total, *others = [_trips(*bounds) for bounds in _bounds(o)]
        for trips in others:
            total = op("arith.muli", [trips.type], [total, trips])
        arguments = list(f.regions[0].blocks[0].arguments)
        count = op("arith.constant", [i64], [], value=ir.IntegerAttr.get(i64, max(1, len(arguments))))
        slots = op("llvm.alloca", [ptr], [count], elem_type=ir.TypeAttr.get(i64))
        for i, a in enumerate(arguments):
            op("llvm.store", [], [a, _slot(slots, i)], ordering=ir.IntegerAttr.get(i64, 0))
        callee = op("llvm.mlir.addressof", [ptr], [], global_name=ir.FlatSymbolRefAttr.get(name))
        op("llvm.call", [], [callee, slots, op("arith.index_cast", [i64], [total])],
           callee=ir.FlatSymbolRefAttr.get("xcc_parallel"), op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
           operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]))
    _declare_pool(module)
    with ir.InsertionPoint(module.body):
        worker = ir.Operation.parse(f"llvm.func @{name}(%slots: !llvm.ptr, %begin: i64, %end: i64) {{ llvm.return }}")
        if MACHINE in f.attributes:     # copies of a few lines: a call of memcpy for each takes longer than they do
            worker.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("no-builtin-memcpy")])
        ir.InsertionPoint(module.body).insert(worker)
    entry = worker.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_terminator(entry):
        copier = _Copier(f, entry.arguments[0])
        outside = _with(ir.InsertionPoint(o), lambda: _bounds(o))
        ranges = [(copier.value(lower), copier.value(upper), copier.value(step)) for lower, upper, step in outside]
        t = ir.IndexType.get()
        begin, end = (op("arith.index_cast", [t], [a]) for a in list(entry.arguments)[1:])
        steps = [_trips(*b) for b in ranges]
        outer = _outer_operands(o)
        for v in dict.fromkeys(v for _, _, v in outer):
            copier.value(v)
        body = _loop(begin, end, index(1))
    with ir.InsertionPoint.at_block_terminator(body):
        ivs: list[Value] = []
        rest = body.arguments[0]
        for i in reversed(range(len(ranges))):
            k = rest if i == 0 else op("arith.remui", [t], [rest, steps[i]])
            rest = rest if i == 0 else op("arith.divui", [t], [rest, steps[i]])
            ivs.insert(0, op("arith.addi", [t], [ranges[i][0], op("arith.muli", [t], [k, ranges[i][2]])]))
    copier.remap(outer)
    _move_body(o, body, ivs)
    _hoist_buffers(body, list(entry.operations)[0].operation)


def _hoist_buffers(body: Block, before: Operation) -> None:
    """Buffers of a fixed size are made once, not for each turn of the loop around `body`."""
    for x in [x.operation for x in body.operations]:
        if x.name == "memref.alloca" and not len(x.operands):
            x.move_before(before)


def _slot(slots: Value, i: int) -> Value:
    ptr, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    return op("llvm.getelementptr", [ptr], [slots], rawConstantIndices=ir.DenseI32ArrayAttr.get([i]),
              elem_type=ir.TypeAttr.get(i64), noWrapFlags=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0))


def _declare_pool(module: Module) -> None:
    if not any(x.operation.name == "llvm.func" and ir.StringAttr(x.attributes["sym_name"]).value == "xcc_parallel"
               for x in module.body.operations):
        declaration = ir.Operation.parse("llvm.func @xcc_parallel(!llvm.ptr, !llvm.ptr, i64)")
        ir.InsertionPoint.at_block_begin(module.body).insert(declaration)


def _outer_operands(o: Operation) -> list[tuple[Operation, int, Value]]:
    """The operands of `o` and of the ops in it that are defined outside it: (op, number, value) each."""
    if not len(o.regions):
        return [(o, i, v) for i, v in enumerate(o.operands)]
    found: list[tuple[Operation, int, Value]] = []
    defined: set[Value] = set()

    def visit(x: Operation) -> WalkResult:
        found.extend((x, i, v) for i, v in enumerate(x.operands) if v not in defined)
        defined.update(x.results)
        for region in x.regions:
            for block in region.blocks:
                defined.update(block.arguments)
        return ir.WalkResult.ADVANCE

    o.walk(visit, ir.WalkOrder.PRE_ORDER)       # in it a value is seen before its uses
    return found


class _Copier:
    """Computes values of the kernel's entry block again in the worker: arguments from slots, the rest by cloning."""

    def __init__(self, f: Operation, slots: Value) -> None:
        self.arguments = {a: n for n, a in enumerate(f.regions[0].blocks[0].arguments)}
        self.slots = slots
        self.map: dict[Value, Value] = {}

    def value(self, v: Value) -> Value:
        if v in self.map:
            return self.map[v]
        if v in self.arguments:
            i64 = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
            self.map[v] = op("llvm.load", [v.type], [_slot(self.slots, self.arguments[v])], ordering=i64)
            return self.map[v]
        source = owner_op(v)
        if source.name in ("memref.alloc", "memref.alloca"):
            raise CompilerBug("lower-forall: a parallel loop uses a buffer allocated outside it")
        outer = _outer_operands(source)
        for _, _, free in outer:
            self.value(free)
        copy = source.clone()
        self.remap(_outer_operands(copy))
        self.map.update(zip(source.results, copy.results, strict=True))
        return self.map[v]

    def remap(self, operands: list[tuple[Operation, int, Value]]) -> None:
        """Puts what was computed again in the place of these operands."""
        for x, i, v in operands:
            if v in self.map:
                x.operands[i] = self.map[v]

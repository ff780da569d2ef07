"""Values of a tile program in the layouts that their uses ask for.

Those that cost nothing (constants, steps, masks, broadcasts, transposes, cheap index arithmetic on those) are computed
again in the layout needed, and so is what a few loads give that each thread makes one of: an exchange would take a
barrier. Others get a conversion, written as a cast of the vector to its own type.
"""

from __future__ import annotations

import math

from xcc._mlir import InsertionPoint, Operation, Value, ir, maker
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import CONVERT, LAYOUT, shape_of
from xcc.passes.shared.values import is_vector

LEAVES = ("arith.constant", "vector.step", "vector.create_mask", "vector.constant_mask")
VIEWS = ("vector.broadcast", "vector.transpose", "vector.shape_cast")
FEW = 8         # registers of a thread that hold what is loaded again


class Relayout:
    """The values of a kernel. `assigned`: the layout that each has been given."""

    def __init__(self) -> None:
        self.assigned: dict[Value, Layout] = {}
        self._cache: dict[tuple[Value, Layout], Value] = {}
        self._few: dict[Value, bool] = {}

    def at(self, value: Value, layout: Layout) -> Value:
        """`value` in `layout`."""
        if self.assigned.get(value) == layout:
            return value
        key = (value, layout)
        if key not in self._cache:
            op = maker(value)
            again = op is not None and (free(op) or layout.registers <= FEW and self._loaded(value))
            self._cache[key] = self._again(op, layout) if op is not None and again else self._converted(value, layout)
        return self._cache[key]

    def _loaded(self, value: Value) -> bool:
        """Whether `value` is loaded, one element a thread at most, free, or cheap arithmetic on such."""
        if value not in self._few:
            op = maker(value)
            self._few[value] = op is not None and (free(op) or self._is_loaded(op))
        return self._few[value]

    def _is_loaded(self, op: Operation) -> bool:
        if op.name == "vector.transfer_read":
            layout = self.assigned.get(op.results[0])
            return layout is not None and layout.registers == 1 and not list(op.attributes["operandSegmentSizes"])[-1]
        return cheap(op) and all(self._loaded(v) for v in op.operands if is_vector(v))

    def _again(self, op: Operation, layout: Layout) -> Value:
        """The result of `op` computed again in `layout`."""
        operands = []
        for v in op.operands:
            if not is_vector(v):
                operands.append(v)
            elif op.name == "vector.broadcast":
                operands.append(self.at(v, _broadcast_source(layout, shape_of(v))))
            elif op.name == "vector.shape_cast":
                operands.append(self.at(v, layout.reshaped(shape_of(v))))
            elif op.name == "vector.transpose":
                order = list(op.attributes["permutation"])
                operands.append(self.at(v, layout.permuted([order.index(d) for d in range(len(order))])))
            else:
                operands.append(self.at(v, layout))
        with _after(op):
            copy = op.clone()
        for i, v in enumerate(operands):
            copy.operands[i] = v
        self.set(copy, [layout])
        return copy.results[0]

    def _converted(self, value: Value, layout: Layout) -> Value:
        if layout.shape != shape_of(value):
            raise CompilerBug(f"a layout of tile {layout.shape} is asked of a value of type {value.type}")
        op = maker(value)
        place = _after(op) if op is not None else ir.InsertionPoint.at_block_begin(value.owner)
        with place:
            cast = ir.Operation.create(CONVERT, results=[value.type], operands=[value])
        self.set(cast, [layout])
        return cast.results[0]

    def set(self, op: Operation, layouts: list[Layout]) -> None:
        """Gives the vectors among the results of `op` their layouts."""
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(x)) for x in layouts])
        for r, x in zip([r for r in op.results if is_vector(r)], layouts, strict=True):
            self.assigned[r] = x

    def use(self, op: Operation, index: int, layout: Layout) -> None:
        """Makes `op` read its operand number `index` in `layout`."""
        op.operands[index] = self.at(op.operands[index], layout)


def free(op: Operation) -> bool:
    """Whether `op` is computed again wherever it is used in another layout."""
    if op.name in LEAVES or op.name in VIEWS:
        return True
    if not cheap(op):
        return False
    owners = [maker(v) for v in op.operands if is_vector(v)]
    index = isinstance(ir.VectorType(op.results[0].type).element_type, ir.IndexType)
    return all(o is not None and (_leafy(o) or index and _spread(o)) for o in owners)


def cheap(op: Operation) -> bool:
    """Whether `op` is arithmetic of few instructions."""
    return op.name.startswith("arith.") and (
        not op.name.startswith(("arith.div", "arith.rem"))
        or isinstance(ir.VectorType(op.results[0].type).element_type, ir.IndexType))


def _spread(op: Operation) -> bool:
    """Whether `op` repeats a smaller vector: that is what is exchanged."""
    return op.name == "vector.broadcast" and math.prod(shape_of(op.operands[0])) < math.prod(shape_of(op.results[0]))


def _leafy(op: Operation) -> bool:
    """Whether `op` reads no data: leaves, and views and cheap arithmetic of those."""
    if op.name in LEAVES:
        return True
    if op.name in VIEWS:
        source = op.operands[0]
        origin = maker(source)
        return not is_vector(source) or origin is not None and _leafy(origin)
    return free(op)


def _broadcast_source(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """What a broadcast to a tile of `layout` asks of its operand of `shape`: copies along the new dims."""
    lead = len(layout.shape) - len(shape)
    stretched = [lead + d for d, s in enumerate(shape) if s == 1]
    return layout.sliced([*range(lead), *stretched]).reshaped(shape)


def _after(op: Operation) -> InsertionPoint:
    """The insertion point right after `op`."""
    block = op.block
    found = False
    for other in block.operations:
        if found:
            return ir.InsertionPoint(other)
        found = other.operation == op
    return ir.InsertionPoint(block)

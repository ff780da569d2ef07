"""Loads, stores, gathers, scatters and atomic updates of tile programs, as transfers or by positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Operation, Value, arith_d, ir
from xcc.passes.shared.values import index, op, splat_constant
from xcc.passes.tile.lowering.ranges import is_multiple, is_within, nonnegative
from xcc.passes.tile.lowering.vectors import broadcast, element_of, like, reshaped, shape_of, step, vector_of
from xcc.passes.tile.lowering.views import BufferView, add, mul, value_of

if TYPE_CHECKING:
    from xcc.dialects.xt.reading import Attrs
    from xcc.passes.tile.lowering.body import Body

_I = arith_d.CmpIPredicate


def view(body: Body, source: Operation, a: Attrs, buffer: Value, bounds: Sequence[Value]) -> None:
    """tile.view"""
    values = [body.get(v) for v in bounds]
    half = len(values) // 2
    body.views[source.results[0]] = body.views[buffer].window(values[:half], values[half:], a.order)


def load(body: Body, source: Operation, a: Attrs, buffer: Value, other: Value, offsets: Sequence[Value]) -> Value:
    """tile.load"""
    at = _Block(body, body.views[buffer], a.shape, offsets)
    pad = _stored(body.get(other), at.view)
    shape = [a.shape[d] for d in at.kept]
    kind = vector_of(shape, at.view.element)
    if at.view.flat:
        made = op("vector.gather", [kind], [at.view.line(), *at.positions(), at.mask(at.kept), broadcast(pad, shape)])
    else:
        made = op("vector.transfer_read", [kind], [at.view.memref, *at.places(), pad, at.mask(at.in_memory())],
                  **at.transfer(1, len(at.view.starts), 1, 1))
    return reshaped(_loaded(made, source.results[0]), a.shape)


def store(body: Body, source: Operation, a: Attrs, value: Value, buffer: Value, offsets: Sequence[Value]) -> None:
    """tile.store"""
    tile = _stored(body.get(value), body.views[buffer])
    at = _Block(body, body.views[buffer], shape_of(tile), offsets)
    tile = reshaped(tile, [shape_of(tile)[d] for d in at.kept])
    if at.view.flat:
        op("vector.scatter", [], [at.view.line(), *at.positions(), at.mask(at.kept), tile])
    else:
        op("vector.transfer_write", [], [tile, at.view.memref, *at.places(), at.mask(at.in_memory())],
           **at.transfer(1, 1, len(at.view.starts), 1))


class _Block:
    """A tile of `shape` that starts at `offsets` of a view. Dims of size 1 are scalars: `kept` are the others."""

    def __init__(self, body: Body, view: BufferView, shape: Sequence[int], offsets: Sequence[Value]) -> None:
        self.view, self.shape, self.sources = view, tuple(shape), list(offsets)
        self.offsets = [body.get(v) for v in offsets]
        self.kept = [d for d, n in enumerate(shape) if n > 1] or [len(shape) - 1]
        self.body = body

    def in_memory(self) -> list[int]:
        """The kept dims in the order that the memref has them."""
        return sorted(self.kept, key=lambda d: self.view.order[d])

    def places(self) -> list[Value]:
        return self.view.places(self.offsets)

    def positions(self) -> list[Value]:
        """Start and index vector of a gather from the view's line."""
        shape = [self.shape[d] for d in self.kept]
        start = self.view.first()
        for d, o in enumerate(self.offsets):
            start = add(start, mul(o, self.view.stride(d)))
        total: Any = None
        for i, d in enumerate(self.kept):
            part = step(shape, i)
            stride = self.view.stride(d)
            if not (isinstance(stride, int) and stride == 1):
                part = arith_d.muli(part, broadcast(value_of(stride), shape))
            total = part if total is None else arith_d.addi(total, part)
        return [value_of(start), total]

    def mask(self, dims: Sequence[int]) -> Value:
        """Which elements of a tile with the dims `dims` lie inside."""
        shape = [self.shape[d] for d in dims]
        ends = [self._left(d) for d in dims]
        for d in range(len(self.shape)):
            if d not in dims and not is_within(self.body, self.sources[d], self.view, d):
                there = arith_d.cmpi(_I.ult, self.offsets[d], value_of(self.view.sizes[d]))
                ends[0] = arith_d.select(there, value_of(ends[0]), index(0))
        kind = vector_of(shape, ir.IntegerType.get_signless(1))
        out = op("vector.create_mask", [kind], [value_of(n) for n in ends])
        for i, d in enumerate(dims):
            if not nonnegative(self.sources[d]) and not self._whole_or_not(d):
                first = arith_d.maxsi(arith_d.subi(index(0), self.offsets[d]), index(0))
                ahead = op("vector.create_mask", [kind], [first if j == i else index(n) for j, n in enumerate(shape)])
                out = arith_d.select(ahead, splat_constant(kind, 0), out)
        return out

    def _whole_or_not(self, d: int) -> bool:
        """Whether a tile begins in front of the view's dim `d` only where it ends there, too."""
        return is_multiple(self.sources[d], self.shape[d])

    def _left(self, d: int) -> Value:
        """How many elements of the view's dim `d` there are from the tile's first on."""
        left = arith_d.subi(value_of(self.view.sizes[d]), self.offsets[d])
        if nonnegative(self.sources[d]) or not self._whole_or_not(d):
            return left
        return arith_d.select(arith_d.cmpi(_I.sge, self.offsets[d], index(0)), left, index(0))

    def transfer(self, *segments: int) -> dict[str, Attribute]:
        rank = len(self.view.starts)
        dims = [ir.AffineDimExpr.get(self.view.order[d]) for d in self.kept]
        return {"in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(self.kept)),
                "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, dims)),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments))}


def _stored(value: Value, at: BufferView) -> Value:
    """As memory has it: a bool is a byte."""
    if element_of(value) == at.element:
        return value
    return arith_d.extui(like(value, at.element), value)


def _loaded(value: Value, result: Value) -> Value:
    """As the program has it."""
    want = ir.VectorType(result.type).element_type
    if element_of(value) == want:
        return value
    return arith_d.cmpi(_I.ne, value, splat_constant(value.type, 0))


def _line(body: Body, at: BufferView, mask: Value, positions: Sequence[Value]) -> tuple[Value, Value, Value]:
    """(start, index vector, mask) of elements at `positions` of a view."""
    shape = shape_of(mask)
    total: Any = None
    for d, p in enumerate(positions):
        place = body.get(p)
        if not isinstance(element_of(place), ir.IndexType):
            place = arith_d.index_cast(like(place, ir.IndexType.get()), place)
        size = broadcast(value_of(at.sizes[d]), shape)
        mask = arith_d.andi(mask, arith_d.cmpi(_I.ult, place, size))
        stride = at.stride(d)
        if not (isinstance(stride, int) and stride == 1):
            place = arith_d.muli(place, broadcast(value_of(stride), shape))
        total = place if total is None else arith_d.addi(total, place)
    return value_of(at.first()), total, mask


def gather(body: Body, source: Operation, a: Attrs, buffer: Value, other: Value, mask: Value,
           positions: Sequence[Value]) -> Value:
    """tile.gather"""
    at = body.views[buffer]
    start, places, active = _line(body, at, body.get(mask), positions)
    shape = shape_of(active)
    made = op("vector.gather", [vector_of(shape, at.element)],
              [at.line(), start, places, active, broadcast(_stored(body.get(other), at), shape)])
    return _loaded(made, source.results[0])


def scatter(body: Body, source: Operation, a: Attrs, value: Value, buffer: Value, mask: Value,
            positions: Sequence[Value]) -> None:
    """tile.scatter"""
    at = body.views[buffer]
    start, places, active = _line(body, at, body.get(mask), positions)
    op("vector.scatter", [], [at.line(), start, places, active, _stored(body.get(value), at)])


def compare_swap(body: Body, source: Operation, a: Attrs, value: Value, buffer: Value, mask: Value, expected: Value,
                 positions: Sequence[Value]) -> Value:
    """tile.compare_swap"""
    return atomic(body, source, a, value, buffer, mask, positions, [expected])


def atomic(body: Body, source: Operation, a: Attrs, value: Value, buffer: Value, mask: Value,
           positions: Sequence[Value], expected: Sequence[Value] = ()) -> Value:
    """tile.atomic, on one dim: what targets take is of a line of one dim."""
    at = body.views[buffer]
    start, places, active = _line(body, at, body.get(mask), positions)
    places = arith_d.addi(places, broadcast(start, shape_of(places)))
    tile = body.get(value)
    shape = shape_of(tile)
    line = [prod(shape)]
    made = op(source.name, [vector_of(line, element_of(tile))],
              [reshaped(tile, line), at.line(), reshaped(active, line),
               *(reshaped(body.get(v), line) for v in expected), reshaped(places, line)],
              **{n: source.attributes[n] for n in source.attributes if n == "kind"})
    return reshaped(made, shape)


HANDLERS: dict[str, Callable[..., Any]] = {
    "atomic": atomic, "compare_swap": compare_swap, "gather": gather, "load": load, "scatter": scatter,
    "store": store, "view": view,
}

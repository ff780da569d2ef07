"""Reductions and scans by a region: trees of steps, each of which combines whole tiles element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, arith_d, ir
from xcc.diagnostics import UserError
from xcc.passes.shared.values import index, is_vector, splat_constant, with_operands
from xcc.passes.tile.lowering.shape import split
from xcc.passes.tile.lowering.vectors import (
    broadcast,
    element_of,
    reduced,
    reshaped,
    shape_of,
    step,
    transposed,
    vector_of,
)

if TYPE_CHECKING:
    from xcc.dialects.xt.reading import Attrs
    from xcc.passes.tile.lowering.body import Body

Tiles = list[Any]


class _Region:
    """What a region of scalars does, on tiles of one shape."""

    def __init__(self, body: Body, block: Block) -> None:
        self.body, self.source = body, block

    def __call__(self, first: Tiles, second: Tiles) -> Tiles:
        shape = shape_of(first[0])
        values: dict[Value, Value] = dict(zip(self.source.arguments, [*first, *second], strict=True))

        def get(v: Value) -> Value:
            return values[v] if v in values else broadcast(self.body.get(v), shape)

        for operation in self.source.operations:
            o = operation.operation
            if o.name == "tile.yield":
                return [get(v) for v in o.operands]
            if o.name == "arith.constant":
                values[o.results[0]] = _splat(o, shape)
                continue
            if not o.name.startswith(("arith.", "math.")):
                raise UserError(f"{o.location}: '{o.name}' in a region that combines: arith and math can be there")
            made = with_operands(o, [get(v) for v in o.operands], [vector_of(shape, r.type) for r in o.results])
            values.update(zip(o.results, made.results, strict=True))
        return []


def _splat(o: Operation, shape: Sequence[int]) -> Any:
    kind = vector_of(shape, o.results[0].type)
    return arith_d.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, o.attributes["value"])).result


def _along_last(body: Body, xs: Sequence[Value], axis: int) -> tuple[Tiles, list[int]]:
    rank = len(shape_of(body.get(xs[0])))
    order = [d for d in range(rank) if d != axis] + [axis]
    return [transposed(body.get(x), order) for x in xs], order


def _reduce_by(body: Body, source: Operation, a: Attrs, xs: Sequence[Value]) -> Tiles:
    """Neighbours are combined until one is left."""
    combine = _Region(body, source.regions[0].blocks[0])
    tiles, _ = _along_last(body, xs, a.axis)
    rest = shape_of(tiles[0])[:-1]
    while (n := shape_of(tiles[0])[-1]) > 1:
        pairs = [split(reshaped(t, (*rest, n // 2, 2))) for t in tiles]
        tiles = combine([p[0] for p in pairs], [p[1] for p in pairs])
    return [reshaped(t, rest) for t in tiles]


def _scan_by(body: Body, source: Operation, a: Attrs, xs: Sequence[Value]) -> Tiles:
    """Sklansky's tree: in blocks of 2, 4, 8, ... what the lower half ends with is combined with the upper half."""
    combine = _Region(body, source.regions[0].blocks[0])
    tiles, order = _along_last(body, xs, a.axis)
    shape = shape_of(tiles[0])
    rest, n = shape[:-1], shape[-1]
    half = 1
    while half < n:
        blocks = (*rest, n // (2 * half), 2 * half)
        inside = step(blocks, len(blocks) - 1)
        middle = broadcast(index(half), blocks)
        last = half if a.reverse else half - 1      # of the half that comes first
        is_last = arith_d.cmpi(arith_d.CmpIPredicate.eq, inside, broadcast(index(last), blocks))
        behind = arith_d.cmpi(arith_d.CmpIPredicate.ult if a.reverse else arith_d.CmpIPredicate.uge, inside, middle)
        cut = [reshaped(t, blocks) for t in tiles]
        ends = [broadcast(reshaped(_picked(t, is_last), (*blocks[:-1], 1)), blocks) for t in cut]
        made = combine(ends, cut)
        tiles = [reshaped(arith_d.select(behind, m, t), shape) for m, t in zip(made, cut, strict=True)]
        half *= 2
    back = [order.index(d) for d in range(len(shape))]
    return [transposed(t, back) for t in tiles]


def _picked(tile: Value, one: Value) -> Value:
    """The element along the last dim where `one` is true, of which there is one."""
    element = element_of(tile)
    floats = isinstance(element, ir.FloatType)
    whole = ir.IntegerType.get_signless(element.width) if floats else element
    bits = arith_d.bitcast(vector_of(shape_of(tile), whole), tile) if floats else tile
    kept = arith_d.select(one, bits, splat_constant(bits.type, 0))
    out = reduced(kept, "or", (len(shape_of(tile)) - 1,))
    kind = vector_of(shape_of(out), element) if is_vector(out) else element
    return arith_d.bitcast(kind, out) if floats else out


HANDLERS: dict[str, Callable[..., Any]] = {"reduce_by": _reduce_by, "scan_by": _scan_by}

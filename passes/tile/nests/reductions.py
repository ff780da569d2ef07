"""Reductions of block values: loops that carry pieces, which are folded at the end where lanes are reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.combining import combining
from xcc.passes.shared.values import extract, shuffle, splat_constant, vec
from xcc.passes.tile.lowering.vectors import neutral
from xcc.passes.tile.nests.choice import is_vector
from xcc.passes.tile.nests.kept import Coords
from xcc.passes.tile.nests.loops import carried_loops, loops
from xcc.passes.tile.nests.pieces import Pieces

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

__all__ = ["HANDLERS"]

_NAMES = {"add": "sum", "mul": "prod", "maxui": "umax", "minui": "umin", "or": "or", "and": "and", "xor": "xor"}


class _Fold:
    """What a vector.multi_reduction does with two pieces."""

    def __init__(self, source: Operation) -> None:
        self.kind = str(source.attributes["kind"]).split("<")[1].split(">")[0]
        self.element = ir.VectorType(source.operands[0].type).element_type
        self.combine: Callable[[Any, Any], Any] = combining(f"<{self.kind}>", self.element)

    def start(self, width: int) -> Any:
        """A piece of what changes nothing."""
        return splat_constant(vec(width, self.element), neutral(_NAMES.get(self.kind, self.kind[:3]), self.element))

    def lanes(self, piece: Any) -> Any:
        """All lanes of a piece combined, halves with halves."""
        width = ir.VectorType(piece.type).shape[0]
        while width > 1:
            width //= 2
            piece = self.combine(shuffle(piece, piece, range(width)), shuffle(piece, piece, range(width, 2 * width)))
        return extract(piece, 0)


def _reduction(r: Retiler, source: Operation) -> None:
    """vector.multi_reduction"""
    value, acc = source.operands
    shape = list(ir.VectorType(value.type).shape)
    reduced = list(ir.DenseI64ArrayAttr(source.attributes["reduction_dims"]))
    left = [d for d in range(len(shape)) if d not in reduced]
    fold = _Fold(source)
    lane = r.lane(shape)
    result = source.results[0]
    if not is_vector(result):
        piece = _of_place(r, value, {}, reduced, lane, shape, fold)
        r.values[result] = fold.combine(piece, r.get(acc))
        return
    kind = ir.VectorType(result.type)
    target = r.targets.get(result) or r.buffer(kind.shape, kind.element_type)

    def body(coords: Coords, along: int, width: int) -> None:
        at = dict(zip(left, coords, strict=True))
        if lane in reduced:
            piece, first = _of_place(r, value, at, reduced, lane, shape, fold), 0
        else:
            piece, first = _beside(r, value, at, reduced, lane, shape, fold, width), width
        start = Pieces(r).of(acc, coords, along, first)
        target.store(fold.combine(piece, start), coords, along)

    if lane in reduced:
        loops(r.wholes, kind.shape, [1] * kind.rank, lambda places: body(tuple(places), 0, 0))
    else:
        r.nest(kind.shape, body, left.index(lane))
    r.kept[result] = target


def _coords(rank: int, *parts: dict[int, Any]) -> Coords:
    out: list[Any] = [0] * rank
    for part in parts:
        for d, c in part.items():
            out[d] = c
    return tuple(out)


def _of_place(r: Retiler, value: Value, at: dict[int, Any], reduced: list[int], lane: int, shape: list[int],
              fold: _Fold) -> Any:
    """The reduction at one place of what is left, lanes too: the first piece, the others onto it."""
    if lane not in reduced:     # nothing but dims of size 1
        return Pieces(r).of(value, _coords(len(shape), at), lane, 0)
    width = r.width(shape[lane])
    return fold.lanes(_beside(r, value, at, [*(d for d in reduced if d != lane), lane], lane, shape, fold, width))


def _beside(r: Retiler, value: Value, at: dict[int, Any], dims: list[int], lane: int, shape: list[int],
            fold: _Fold, width: int) -> Any:
    """The pieces along `dims` combined."""
    steps = [width if d == lane else 1 for d in dims]
    sizes = [shape[d] for d in dims]
    if all(n <= s for n, s in zip(sizes, steps, strict=True)):
        return Pieces(r).of(value, _coords(len(shape), at), lane, width)

    def body(places: list[Any], carried: list[Any]) -> list[Any]:
        where = _coords(len(shape), at, dict(zip(dims, places, strict=True)))
        return [fold.combine(carried[0], Pieces(r).of(value, where, lane, width))]

    return carried_loops(r.wholes, sizes, steps, [fold.start(width)], body)[0]


HANDLERS: dict[str, Callable[..., None]] = {"vector.multi_reduction": _reduction}

"""Reductions of block values: loops that carry pieces, which are folded at the end where lanes are reduced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.combining import combining
from xcc.passes.shared.values import extract, is_vector, scalar_attr, shuffle, splat_constant, vec
from xcc.passes.tile.lowering.vectors import neutral
from xcc.passes.tile.lowering.views import add
from xcc.passes.tile.nests.fetches import fetching
from xcc.passes.tile.nests.kept import Coords
from xcc.passes.tile.nests.loops import FEW, carried_loops, loops
from xcc.passes.tile.nests.pieces import Pieces

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

PARTS = 2       # pieces of a long line at a time
FEW_LANES = 4   # a part of a vector so small is not worth one
_F = arith_d.CmpFPredicate
_NAMES = {"add": "sum", "mul": "prod", "maxui": "umax", "minui": "umin", "or": "or", "and": "and", "xor": "xor"}


def _bare(kind: str) -> str:
    """The name inside ``#vector.kind<...>``."""
    return kind.split("<")[1].split(">")[0]


def neutral_of(kind: str, element: Type) -> float:
    """What changes nothing in a reduction or scan of ``#vector.kind<...>``."""
    return neutral(_NAMES.get(_bare(kind), _bare(kind)[:3]), element)


class _Fold:
    """What a vector.multi_reduction does with pieces: the state of a loop over them is a list of pieces."""

    def __init__(self, source: Operation, across: bool) -> None:
        """across: lanes are combined with each other at the end."""
        self.across = across
        self.kind = _bare(str(source.attributes["kind"]))
        self.element = ir.VectorType(source.operands[0].type).element_type
        self.combine: Callable[[Any, Any], Any] = combining(f"<{self.kind}>", self.element)
        self.neutral = neutral_of(f"<{self.kind}>", self.element)

    def start(self, width: int) -> list[Value]:
        """The state before the first piece."""
        return [splat_constant(vec(width, self.element), self.neutral)]

    def step(self, state: list[Value], piece: Value) -> list[Value]:
        return [self.combine(state[0], piece)]

    def join(self, one: list[Value], other: list[Value]) -> list[Value]:
        """The state behind the pieces of two."""
        return [self.combine(one[0], other[0])]

    def piece(self, state: list[Any]) -> Any:
        """What each lane has come to."""
        return state[0]

    def lanes(self, state: list[Value]) -> Value:
        """All lanes combined."""
        return _halves(state[0], self.combine)

    def begins_with(self, start: Value) -> bool:
        """Whether `start` changes nothing."""
        if isinstance(start.owner, ir.Block) or start.owner.operation.name != "arith.constant":
            return False
        value = start.owner.operation.attributes["value"]
        if is_vector(start):
            dense = ir.DenseElementsAttr(value)
            return dense.is_splat and dense.get_splat_value() == scalar_attr(self.element, self.neutral)
        return bool(value == scalar_attr(self.element, self.neutral))


class _Extremum(_Fold):
    """A maximum or minimum of floats: a comparison a piece, and apart from it a NaN that was met, by one for two lanes
    where these are combined at the end. That each step is NaN where an element is takes six instructions on x86, one
    after the other."""

    def start(self, width: int) -> list[Value]:
        return [*super().start(width), splat_constant(vec(self._lanes_met(width), self.element), 0)]

    def step(self, state: list[Value], piece: Value) -> list[Value]:
        best, met = state
        width = ir.VectorType(piece.type).shape[0]
        half = self._lanes_met(width)
        low, high = (shuffle(piece, piece, range(at, at + half)) if half < width else piece for at in (0, width - half))
        nan = splat_constant(vec(half, self.element), math.nan)
        return [self._better(piece, best), arith_d.select(arith_d.cmpf(_F.UNO, low, high), nan, met)]

    def _lanes_met(self, width: int) -> int:
        return width // 2 if self.across and width > 1 else width

    def join(self, one: list[Value], other: list[Value]) -> list[Value]:
        return [self._better(one[0], other[0]), arith_d.addf(one[1], other[1])]

    def piece(self, state: list[Value]) -> Value:
        best, met = state
        return arith_d.select(arith_d.cmpf(_F.UNO, met, met), met, best)

    def lanes(self, state: list[Value]) -> Value:
        return self.piece([_halves(state[0], self._better), _halves(state[1], arith_d.addf)])

    def _better(self, x: Value, y: Value) -> Value:
        return arith_d.select(arith_d.cmpf(_F.OGT if self.kind == "maximumf" else _F.OLT, x, y), x, y)


def _halves(piece: Value, combine: Callable[[Any, Any], Any]) -> Value:
    """All lanes of a piece combined, halves with halves."""
    width = ir.VectorType(piece.type).shape[0]
    while width > 1:
        width //= 2
        piece = combine(shuffle(piece, piece, range(width)), shuffle(piece, piece, range(width, 2 * width)))
    return extract(piece, 0)


def _fold_of(source: Operation, across: bool) -> _Fold:
    fold = _Fold(source, across)
    wide = isinstance(fold.element, ir.FloatType) and fold.element.width >= 32
    return _Extremum(source, across) if wide and fold.kind in ("maximumf", "minimumf") else fold


def _reduction(r: Retiler, source: Operation) -> None:
    """vector.multi_reduction"""
    with r.joining(source):
        _reduce(r, source)


def _reduce(r: Retiler, source: Operation) -> None:
    value, acc = source.operands
    shape = list(ir.VectorType(value.type).shape)
    reduced = list(ir.DenseI64ArrayAttr(source.attributes["reduction_dims"]))
    left = [d for d in range(len(shape)) if d not in reduced]
    lane = _lane(r, shape, left)
    fold = _fold_of(source, lane in reduced)
    bare = fold.begins_with(acc)
    result = source.results[0]
    if not is_vector(result):
        piece = _of_place(r, source, {}, reduced, lane, shape, fold)
        r.values[result] = piece if bare else fold.combine(piece, r.get(acc))
        return
    kind = ir.VectorType(result.type)
    target = r.targets.get(result) or r.buffer(kind.shape, kind.element_type)

    def body(coords: Coords, along: int, width: int) -> None:
        at = dict(zip(left, coords, strict=True))
        if lane in reduced:
            piece, first = _of_place(r, source, at, reduced, lane, shape, fold), 0
        else:
            piece, first = fold.piece(_beside(r, source, at, reduced, lane, shape, fold, width)), width
        if not bare:
            piece = fold.combine(piece, Pieces(r).of(acc, coords, along, first))
        target.store(piece, coords, along)

    if lane in reduced:
        loops(r.wholes, kind.shape, [1] * kind.rank, lambda places: body(tuple(places), 0, 0))
    else:
        r.nest(kind.shape, body, left.index(lane))
    r.kept[result] = target


def _lane(r: Retiler, shape: list[int], left: list[int]) -> int:
    """The dim along which pieces lie: one that stays where the last is but a few elements that are combined."""
    lane = r.lane(shape)
    beside = [d for d in left if shape[d] >= r.lanes]
    return beside[-1] if lane not in left and FEW_LANES * shape[lane] <= r.lanes and beside else lane


def _coords(rank: int, *parts: Mapping[int, Value | int]) -> Coords:
    out: list[Value | int] = [0] * rank
    for part in parts:
        for d, c in part.items():
            out[d] = c
    return tuple(out)


def _of_place(r: Retiler, source: Operation, at: dict[int, int], reduced: list[int], lane: int, shape: list[int],
              fold: _Fold) -> Value:
    """The reduction at one place of what is left, lanes too: the first piece, the others onto it."""
    if lane not in reduced:     # nothing but dims of size 1
        return Pieces(r).of(source.operands[0], _coords(len(shape), at), lane, 0)
    width = r.width(shape[lane])
    return fold.lanes(_beside(r, source, at, [*(d for d in reduced if d != lane), lane], lane, shape, fold, width))


def _beside(r: Retiler, source: Operation, at: dict[int, int], dims: list[int], lane: int, shape: list[int],
            fold: _Fold, width: int) -> list[Value]:
    """The state of `fold` behind the pieces along `dims`. Long lines are two by two, so that one piece is computed
    while the other waits for the one before."""
    parts = PARTS if lane in dims and shape[lane] >= PARTS * FEW * width else 1
    steps = [parts * width if d == lane else 1 for d in dims]
    sizes = [shape[d] for d in dims]
    fetch = fetching(r, source)

    def body(places: list[Value | int], carried: list[Value]) -> list[Value]:
        where = _coords(len(shape), at, dict(zip(dims, places, strict=True)))
        each = len(carried) // parts
        out: list[Value] = []
        for n in range(parts):
            there = tuple(add(c, n * width) if d == lane else c for d, c in enumerate(where))
            fetch(there, lane, width)
            out += fold.step(carried[n * each:(n + 1) * each], Pieces(r).of(source.operands[0], there, lane, width))
        return out

    state = carried_loops(r.wholes, sizes, steps, fold.start(width) * parts, body, FEW)
    each = len(state) // parts
    while len(state) > each:
        state = [*state[:-2 * each], *fold.join(state[-2 * each:-each], state[-each:])]
    return state


HANDLERS: dict[str, Callable[..., None]] = {"vector.multi_reduction": _reduction}

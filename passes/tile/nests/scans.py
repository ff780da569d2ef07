"""Scans of block values: a line goes piece by piece, from end to end, and a piece by steps of 1, 2, 4, ... lanes
(Hillis and Steele, 1986) in registers, which do not wait for the pieces before; these add one operation to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.attributes import REVERSE
from xcc.passes.shared.combining import combining
from xcc.passes.shared.values import index, shuffle, splat, splat_constant, vec
from xcc.passes.tile.lowering.views import value_of
from xcc.passes.tile.nests.choice import written_scan
from xcc.passes.tile.nests.kept import Coords
from xcc.passes.tile.nests.loops import FEW, carried_loops, loops
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.reductions import neutral_of

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


class Running:
    """A scan at a piece of its line; `before`: what the pieces before have come to, in each lane of a register."""

    def __init__(self, source: Operation, before: Value) -> None:
        self.source, self.before = source, before
        self.element = ir.VectorType(source.results[0].type).element_type
        self.combine: Callable[[Value, Value], Value] = combining(str(source.attributes["kind"]), self.element)
        self.back = REVERSE in source.attributes
        self.inclusive = bool(ir.BoolAttr(source.attributes["inclusive"]).value)

    def of(self, piece: Value) -> Value:
        """The scan of the next piece of the line."""
        width, part = (ir.VectorType(v.type).shape[0] for v in (piece, self.before))
        starts = list(range(0, width, part))
        made: dict[int, Value] = {}
        for at in reversed(starts) if self.back else starts:
            lanes = self._lanes(shuffle(piece, piece, range(at, at + part)), part)
            end = shuffle(lanes, lanes, [0 if self.back else part - 1] * part)
            made[at] = self.combine(self.before, lanes if self.inclusive else self._moved(lanes, 1, part))
            self.before = self.combine(self.before, end)
        return _joined([made[at] for at in starts])

    def _lanes(self, piece: Value, width: int) -> Value:
        apart = 1
        while apart < width:
            piece = self.combine(self._moved(piece, apart, width), piece)
            apart *= 2
        return piece

    def _moved(self, piece: Value, lanes: int, width: int) -> Value:
        """The elements so many lanes behind, neutral ones where there are none."""
        none = splat_constant(vec(width, self.element), neutral_of(str(self.source.attributes["kind"]), self.element))
        if self.back:
            return shuffle(piece, none, range(lanes, width + lanes))
        return shuffle(none, piece, range(width - lanes, 2 * width - lanes))


def _joined(parts: list[Value]) -> Value:
    """Pieces that follow each other as one."""
    while len(parts) > 1:
        width = 2 * ir.VectorType(parts[0].type).shape[0]
        parts = [shuffle(a, b, range(width)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def scan_nest(r: Retiler, source: Operation, shape: Sequence[int], lane: int, order: Sequence[int],
              body: Callable[[Coords, int, int], None]) -> None:
    """Calls `body(coords, lane, width)` inside loops over `shape`, those along `lane` innermost and in the order of the
    scan `source`, of whose result it may ask for the piece at hand."""
    outer = [d for d in order if d != lane]
    n, width = shape[lane], r.width(shape[lane])
    back = REVERSE in source.attributes

    def line(places: list[Value | int]) -> None:
        coords: list[Value | int] = [0] * len(shape)
        for d, c in zip(outer, places, strict=True):
            coords[d] = c

        def piece(at: list[Value | int], carried: list[Value]) -> list[Value]:
            coords[lane] = arith_d.subi(index(n - width), value_of(at[0])) if back and n > width else at[0]
            r.scans[source] = Running(source, carried[0])
            body(tuple(coords), lane, width)
            return [r.scans.pop(source).before]

        start = _start(r, source, coords[0] if len(shape) == 2 else 0, width)
        carried_loops(r.wholes, [n], [width], [start], piece, FEW)

    loops(r.wholes, [shape[d] for d in outer], [1] * len(outer), line)


def _start(r: Retiler, source: Operation, row: Value | int, width: int) -> Value:
    """What a line begins with, in each lane of a register."""
    element = ir.VectorType(source.results[0].type).element_type
    bytes = 8 if isinstance(element, ir.IndexType) else max(1, element.width // 8)
    return splat(Pieces(r).of(source.operands[1], (row,), 0, 0), min(width, r.vector_bytes // bytes))


def _scan(r: Retiler, source: Operation) -> None:
    """vector.scan along the last dim of [rows, n]"""
    if written_scan(source):
        return
    result = source.results[0]
    target = r.place(result)

    def body(coords: Coords, lane: int, width: int) -> None:
        target.store(Pieces(r).of(result, coords, lane, width), coords, lane)

    scan_nest(r, source, target.shape, 1, (0, 1), body)
    r.kept[result] = target


HANDLERS: dict[str, Callable[..., None]] = {"vector.scan": _scan}

"""tile.sort on a CPU: rows in memory, which a network sorts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.sort_network import Keys, SortNetwork
from xcc.passes.tile.nests.kept import Kept
from xcc.passes.tile.nests.loops import loops

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def sort(r: Retiler, source: Operation) -> None:
    """The rows of the operands sorted, each word in memory of its own."""
    words: list[Kept] = []
    for v in source.operands:
        kind = ir.VectorType(v.type)
        words.append(r.buffer(kind.shape, kind.element_type))
        r.fill(words[-1], v)
    rows, n = words[0].shape
    lanes = min(n, r.vector_bytes * 8 // max(ir.IntegerType(w.element).width for w in words))
    loops(r.wholes, [rows], [1], lambda at: _Row(n, lanes, True, words, at[0]).sort())
    for v, w in zip(source.results, words, strict=True):
        kind = ir.VectorType(v.type)
        r.kept[v] = w if tuple(kind.shape) == w.shape else _first(r, w, list(kind.shape))


def _first(r: Retiler, w: Kept, shape: list[int]) -> Kept:
    """The first columns of `w`."""
    made = r.buffer(shape, w.element)
    loops(r.wholes, shape, [1, 1], lambda at: made.store(w.load((at[0], at[1]), 1, 0), (at[0], at[1]), 1))
    return made


@dataclass(frozen=True)
class _Row(SortNetwork):
    """Row `row` of `words`."""

    words: list[Kept]
    row: Value | int

    def load(self, at: Value, _mask: Value | None) -> Keys:
        return [w.load((self.row, at), 1, self.lanes) for w in self.words]

    def store(self, keys: Keys, at: Value, _mask: Value | None) -> None:
        for w, v in zip(self.words, keys, strict=True):
            w.store(v, (self.row, at), 1)

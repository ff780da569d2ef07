"""tile.sort on a CPU: a bitonic network (Batcher, 1968) over rows in memory, by vectors.

Elements that lie a vector apart and more are exchanged between vectors; nearer ones within a vector that is loaded
once for all steps down to neighbours, by shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.values import dense_constant, index, is_less, op, shuffle, splat
from xcc.passes.tile.lowering.views import value_of
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
    network = _Network(words, min(n, r.vector_bytes * 8 // max(ir.IntegerType(w.element).width for w in words)))
    for blocks, apart in network.steps():
        step = network.between if apart else network.within
        loops(r.wholes, [rows, n // network.lanes // (2 if apart else 1)], [1, 1],
              lambda at, b=blocks, d=apart, step=step: step(at[0], at[1], b, d))      # type: ignore[misc]
    for v, w in zip(source.results, words, strict=True):
        kind = ir.VectorType(v.type)
        r.kept[v] = w if tuple(kind.shape) == w.shape else _first(r, w, list(kind.shape))


def _first(r: Retiler, w: Kept, shape: list[int]) -> Kept:
    """The first columns of `w`."""
    made = r.buffer(shape, w.element)
    loops(r.wholes, shape, [1, 1], lambda at: made.store(w.load((at[0], at[1]), 1, 0), (at[0], at[1]), 1))
    return made


class _Network:
    """Exchanges of rows of `words`, `lanes` elements at a time; blocks are sorted upwards and downwards in turn."""

    def __init__(self, words: list[Kept], lanes: int) -> None:
        self.words, self.lanes, self.n = words, lanes, words[0].shape[1]

    def steps(self) -> Iterator[tuple[list[int], int]]:
        """The sizes of the blocks that a pass over the rows works on, and how far apart: 0, within vectors."""
        yield [1 << i for i in range(1, self.lanes.bit_length())], 0
        block = 2 * self.lanes
        while block <= self.n:
            apart = block // 2
            while apart >= self.lanes:
                yield [block], apart
                apart //= 2
            yield [block], 0
            block *= 2

    def between(self, row: Value | int, number: Value | int, blocks: list[int], apart: int) -> None:
        """Pair `number` of vectors `apart` elements from each other."""
        (block,), per = blocks, apart // self.lanes
        at = value_of(number)
        group = op("arith.divui", [ir.IndexType.get()], [at, index(per)])
        rest = op("arith.remui", [ir.IndexType.get()], [at, index(per)])
        low = arith_d.addi(arith_d.muli(group, index(2 * apart)), arith_d.muli(rest, index(self.lanes)))
        high = arith_d.addi(low, index(apart))
        a, b = ([w.load((row, at), 1, self.lanes) for w in self.words] for at in (low, high))
        swap = self._down(is_less(b, a), low, block)
        for w, x, y in zip(self.words, a, b, strict=True):
            w.store(arith_d.select(swap, y, x), (row, low), 1)
            w.store(arith_d.select(swap, x, y), (row, high), 1)

    def within(self, row: Value | int, number: Value | int, blocks: list[int], _apart: int) -> None:
        """Vector `number`: all exchanges of lanes in each of `blocks`."""
        at = arith_d.muli(value_of(number), index(self.lanes))
        values = [w.load((row, at), 1, self.lanes) for w in self.words]
        for block in blocks:
            apart = min(block, self.lanes) // 2
            while apart:
                values = self._exchanged(values, at, block, apart)
                apart //= 2
        for w, v in zip(self.words, values, strict=True):
            w.store(v, (row, at), 1)

    def _exchanged(self, values: Sequence[Value], at: Value, block: int, apart: int) -> list[Value]:
        others = [shuffle(v, v, [i ^ apart for i in range(self.lanes)]) for v in values]
        larger = [bool(i & apart) != (block < self.lanes and bool(i & block)) for i in range(self.lanes)]
        taken = arith_d.xori(is_less(others, values), dense_constant(ir.IntegerType.get_signless(1), larger))
        taken = self._down(taken, at, block) if block >= self.lanes else taken
        return [arith_d.select(taken, o, v) for o, v in zip(others, values, strict=True)]

    def _down(self, swap: Value, at: Value, block: int) -> Value:
        """`swap`, in blocks that are sorted downwards the other way round."""
        if block >= self.n:
            return swap
        down = arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(at, index(block)), index(0))
        return arith_d.xori(swap, splat(down, self.lanes))

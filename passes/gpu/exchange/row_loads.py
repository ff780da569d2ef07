"""Loads of rows of 16-bit elements that begin anywhere: two words that hold a thread's elements, shifted.

    memory    | . . . 0 | 1 2 3 4 | 5 6 7 . |      a row that begins three elements behind a word
    lane 0      [. . . 0] [1 2 3 4]                -> 0 1 2 3
    lane 1                [1 2 3 4] [5 6 7 .]      -> 4 5 6 7

A word is as long as what a thread holds of neighbours, 16 bytes at most. Each thread reads off its address how far its
elements are behind a word. The second word is the next lane's first, so that it comes from the cache; it is not read
where a row begins with a word. No word is read without an element that is wanted, nor one beyond the array's end: what
there is of that goes alone. All words are asked for before the first is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, memref_d, vector_d
from xcc.passes.gpu.exchange.row_words import SGE, WORD, RowWords, i32, is_set, joined_halves, number, words_of
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, registers_of
from xcc.passes.gpu.memory import transfers
from xcc.passes.gpu.memory.access import Access
from xcc.passes.shared.regions import any_of, either
from xcc.passes.shared.values import conjunction, index, splat_constant, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder


def read(k: KernelBuilder, op: Operation) -> None:
    """vector.transfer_read"""
    layout = k.layout(op.results[0])
    access = Access(op, k.chip.vector_bytes)
    if access.shifted(layout)[0] <= access.aligned:
        transfers.read(k, op)
        return
    padding = k.get(op.operands[1 + len(access.sizes)])
    k.values[op.results[0]] = ShiftedLoads(k, op, access, layout).all(padding)


class ShiftedLoads(RowWords):
    """The loads of one thread for a transfer_read whose rows begin within words of `run` elements."""

    def __init__(self, k: KernelBuilder, op: Operation, access: Access, layout: Layout) -> None:
        super().__init__(k, op, access, layout)
        known = prod(access.sizes) if min(access.sizes) >= 0 else 1
        self.end: Value | None = None       # of the array, where that may be within a word
        if known % self.run:
            self.end = reduce(arith_d.muli, map(self.size, range(len(access.sizes))))
        self.memref = self.view(self._shift)

    def _shift(self, first: Value) -> Value:
        """Elements from where a word begins to the thread's first element."""
        self.first = arith_d.andi(first, index(self.run - 1))
        self.begin = arith_d.subi(first, self.first)
        return self.first

    def all(self, padding: Value) -> Value:
        """The thread's registers; `padding` where the mask is off."""
        words = [self._words(group) for group in self.groups]
        pieces = [self._piece(line, inside) for line, inside in words]
        out: list[Value | None] = [None] * self.layout.registers
        for group, piece in zip(self.groups, self._masked(pieces, padding), strict=True):
            for r, s in zip(group, registers_of(piece), strict=True):
                out[r] = s
        return from_registers([s for s in out if s is not None])

    def _words(self, group: list[int]) -> tuple[list[Value], Value]:
        """The registers of the two words that hold the elements of `group`, and how many elements are ahead of them."""
        place, inside = self.at(self.first, self.layout.at(register=group[0]), self.run)
        begin = arith_d.subi(place, inside)
        ahead = arith_d.index_cast(i32(), inside)
        left, row = self.left(group[0])
        begins = None if left is None else arith_d.cmpi(SGE, left, number(1))
        ends = arith_d.cmpi(SGE, ahead, number(1))
        if left is not None:
            ends = arith_d.andi(ends, arith_d.cmpi(SGE, arith_d.addi(left, ahead), number(self.run + 1)))
        line = []
        for n, wanted in ((0, conjunction((begins, row))), (1, conjunction((ends, row)))):
            line += registers_of(self._word(arith_d.addi(begin, index(n * self.run)), wanted))
        return line, ahead

    def _word(self, begin: Value, wanted: Value | None) -> Value:
        """The registers of the word from `begin` on; zeros where it is not `wanted`."""
        kind = vec(self.run * self.access.bytes // WORD, i32())

        def whole() -> Value:
            half = vec(self.run, self.access.element)
            loaded = vector_d.load(half, self.memref, [begin], alignment=self.run * self.access.bytes)
            return vector_d.bitcast(kind, loaded)

        def inside() -> Value:
            if self.end is None:
                return whole()
            left = arith_d.subi(self.end, arith_d.addi(self.begin, begin))
            return either(arith_d.cmpi(SGE, left, index(self.run)), kind, whole, lambda: self._alone(begin, left))

        return inside() if wanted is None else either(wanted, kind, inside, lambda: splat_constant(kind, 0))

    def _alone(self, begin: Value, left: Value) -> Value:
        """The registers of the array's last word, of which there are `left` elements."""
        def element(n: int) -> Callable[[], Value]:
            return lambda: memref_d.load(self.memref, [arith_d.addi(begin, index(n))])

        kind = self.access.element
        return from_registers(words_of(from_registers([
            either(arith_d.cmpi(SGE, left, index(n + 1)), kind, element(n), lambda: splat_constant(kind, 0))
            for n in range(self.run)])))

    def _piece(self, line: list[Value], ahead: Value) -> Value:
        """The elements behind the first `ahead` of two words."""
        for bit in reversed(range(1, (self.run - 1).bit_length())):
            if 1 << bit >= self.access.aligned:
                test, apart = is_set(ahead, bit), 1 << bit - 1
                line = [arith_d.select(test, b, a) for a, b in zip(line, line[apart:], strict=False)]
        if self.access.aligned == 1:
            odd = is_set(ahead, 0)
            line = [arith_d.select(odd, joined_halves(a, b), a) for a, b in zip(line, line[1:], strict=False)]
        words = from_registers(line[:self.run * self.access.bytes // WORD])
        return vector_d.bitcast(vec(self.run, self.access.element), words)

    def _masked(self, pieces: list[Value], padding: Value) -> list[Value]:
        """`pieces` with `padding` where the mask is off."""
        if self.mask is None:
            return pieces
        mask = self.mask

        def selected() -> list[Value]:
            return [from_registers([arith_d.select(mask[r], s, padding) for r, s in
                                    zip(group, registers_of(piece), strict=True)])
                    for group, piece in zip(self.groups, pieces, strict=True)]

        tests = []
        for group in self.groups:
            left, row = self.left(group[0])
            tests += [None if left is None else arith_d.cmpi(SGE, left, number(self.run)), row]
        whole = conjunction(tuple(tests))
        return selected() if whole is None else any_of(whole, [p.type for p in pieces], lambda: pieces, selected)

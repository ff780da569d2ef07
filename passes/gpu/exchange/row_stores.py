"""Stores of rows of 16-bit elements that begin anywhere: in words that take elements of two lanes.

    lane                0                 1                2            3
    holds            0 1 2 3           4 5 6 7         8 9 10 11   12 13 14 15
    row 0           [0 1 2 3]         [4 5 6 7]       [8 9 10 11] [12 13 14 15]     a word of each lane
    row 1             0 1 2         [3 4 5 6]        [7 8 9 10] [11 12 13 14]  15   a word with what the lane before has

A word is as long as what a thread holds of neighbours, 16 bytes at most. Where rows are no multiple of it, a row begins
`shift` elements behind a word, in each row others, which threads read off their addresses. Element by element each
sector of memory would be written several times. What is left at the ends of a tile's rows, or by a mask, goes alone.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Type, Value, arith_d, ir, maker, memref_d, vector_d
from xcc.passes.gpu.exchange.lane_exchange import emit_shuffle
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import (
    from_registers,
    guarded,
    register_groups,
    registers_of,
    select_registers,
)
from xcc.passes.gpu.memory.access import Access
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.shared.values import index, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

BYTES, WORD = 2, 4      # of an element and of a register


def write(k: KernelBuilder, op: Operation) -> None:
    """vector.transfer_write"""
    value = op.operands[0]
    layout = k.layout(value)
    access = Access(op, k.chip.vector_bytes)
    transfer = (ShiftedRows if ShiftedRows.fits(op, access, layout) else Transfer)(k, op, access, layout)

    def store() -> None:
        for batch in k.pieces.batches(op, value, transfer.groups):
            held = [r for group in batch for r in group]
            piece = k.pieces.get(value, held)
            for group in batch:
                transfer.store(group, select_registers(piece, [held.index(r) for r in group]))

    guarded(k.code.first_copy(layout), store)


class ShiftedRows(Transfer):
    """The stores of one thread for a transfer_write whose rows begin within words of `run` elements.

    Registers come by rising columns: those of `held` are of the columns before.
    """

    def __init__(self, k: KernelBuilder, op: Operation, access: Access, layout: Layout) -> None:
        super().__init__(k, op, access, layout)
        self.run, self.lanes = access.shifted(layout)
        self.dim = access.along
        self.groups = sorted(register_groups(layout.registers, layout.contiguous(self.run, self.dim)[1]),
                             key=self._column)
        self.columns = set(map(self._column, self.groups))
        mask = maker(op.operands[len(op.operands) - 1], "vector.create_mask") if self.mask is not None else None
        self.limit = None if mask is None else k.get(mask.operands[len(mask.operands) - 1])
        self.memref, self.first = self.view(self.run)
        self.lane = arith_d.index_cast(_i32(), k.code.lane)
        self.place = arith_d.andi(self.lane, _number(self.lanes - 1))       # along the row
        self.held: dict[tuple[int, ...], list[Value]] = {}      # the words of what is stored already, by position

    def _column(self, group: list[int]) -> int:
        return self.layout.at(register=group[0])[self.dim]

    @staticmethod
    def fits(op: Operation, access: Access, layout: Layout) -> bool:
        """Whether lanes lie along rows that may begin within words."""
        masked = list(op.attributes["operandSegmentSizes"])[-1]
        return access.shifted(layout)[0] > access.aligned and not layout.copies("lane") and not layout.copies("warp") \
            and (not masked or maker(op.operands[len(op.operands) - 1], "vector.create_mask") is not None)

    def store(self, group: list[int], piece: Value) -> None:
        position = list(self.layout.at(register=group[0]))
        column, step = position[self.dim], self.run * self.lanes
        offset = sum(_offset(self.access, tuple(position)))
        words = _words(piece)
        self.held[tuple(position)] = words
        position[self.dim] = column - step
        before = self.held.get(tuple(position))
        place = arith_d.addi(self.first, index(offset))
        inside = arith_d.andi(arith_d.addi(self.first, index(offset % self.run)), index(self.run - 1))
        at, shift = arith_d.subi(place, inside), arith_d.index_cast(_i32(), inside)
        joined = self._joined(words, before, shift)
        left = None if self.limit is None else \
            arith_d.subi(self.limit, self.k.code.coordinate(self.layout, group[0], self.dim))
        kept_row = None if self.mask is None else self.mask[group[0]]
        whole, follows = (self._whole(n, shift, left, neighbour) for n, neighbour in (
            (0, before is not None), (1, column + step in self.columns)))
        guarded(_both(whole, kept_row), lambda: vector_d.store(joined, self.memref, [at], alignment=self.run * BYTES))
        if whole is None and follows is None:
            return
        true = arith_d.constant(ir.IntegerType.get_signless(1), 1)
        kept = [true if test is None else test for test in (whole, follows)]
        some = arith_d.xori(arith_d.andi(*kept), true)

        def alone() -> None:
            for n, element in enumerate(registers_of(piece)):
                own = arith_d.cmpi(arith_d.CmpIPredicate.sle, shift, _number(self.run - 1 - n))
                missing = arith_d.xori(arith_d.select(own, *kept), true)
                here = None if left is None else arith_d.cmpi(arith_d.CmpIPredicate.slt, index(n), left)
                guarded(_both(missing, here), partial(memref_d.store, element, self.memref,
                                                      [arith_d.addi(place, index(n))]))

        guarded(_both(some, kept_row), alone)

    def _whole(self, ahead: int, shift: Value, left: Value | None, neighbour: bool) -> Value | None:
        """Whether the word that ends in what a thread has, or that `ahead` of it, is whole in the tile and in what the
        mask leaves; None where it always is. neighbour: the lane at that end has one, in another register."""
        test = None
        if not neighbour:
            end = arith_d.cmpi(arith_d.CmpIPredicate.ne, self.place, _number(self.lanes - 1 if ahead else 0))
            test = end if ahead else arith_d.ori(end, arith_d.cmpi(arith_d.CmpIPredicate.eq, shift, _number(0)))
        if left is None:
            return test
        needed = arith_d.subi(index((1 + ahead) * self.run), arith_d.index_cast(ir.IndexType.get(), shift))
        return _both(test, arith_d.cmpi(arith_d.CmpIPredicate.sle, needed, left))

    def _joined(self, words: list[Value], before: list[Value] | None, shift: Value) -> Value:
        """The last `shift` elements of the lane before, for the first lane of the last one's register before, then the
        thread's own."""
        sent = words
        if before is not None:
            last = arith_d.cmpi(arith_d.CmpIPredicate.eq, self.place, _number(self.lanes - 1))
            sent = [arith_d.select(last, b, w) for b, w in zip(before, words, strict=True)]
        ring = arith_d.andi(arith_d.subi(self.place, _number(1)), _number(self.lanes - 1))
        source = arith_d.addi(arith_d.subi(self.lane, self.place), ring)
        line = [*(emit_shuffle(self.k.chip.warp, w, None, source) for w in sent), *words]
        for bit in reversed(range(1, (self.run - 1).bit_length())):
            if 1 << bit >= self.access.aligned:
                moved = _is_set(shift, bit)
                apart = 1 << bit - 1
                line = [*line[:apart], *(arith_d.select(moved, a, b) for a, b in zip(line, line[apart:], strict=False))]
        if self.access.aligned == 1:
            odd, half = _is_set(shift, 0), _number(16)
            line = [*line[:1], *(arith_d.select(odd, arith_d.ori(arith_d.shli(b, half), arith_d.shrui(a, half)), b)
                                 for a, b in zip(line, line[1:], strict=False))]
        line = line[len(words):]
        return vector_d.bitcast(vec(self.run, self.access.element), from_registers(line))


def _words(piece: Value) -> list[Value]:
    return registers_of(vector_d.bitcast(vec(ir.VectorType(piece.type).shape[0] * BYTES // WORD, _i32()), piece))


def _i32() -> Type:
    return ir.IntegerType.get_signless(32)


def _number(n: int) -> Value:
    return arith_d.constant(_i32(), n)


def _is_set(value: Value, bit: int) -> Value:
    return arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(value, _number(1 << bit)), _number(0))


def _both(a: Value | None, b: Value | None) -> Value | None:
    return b if a is None else a if b is None else arith_d.andi(a, b)


def _offset(access: Access, position: tuple[int, ...]) -> list[int]:
    """What each coordinate of a tile's position adds to an element's place in memory."""
    return [c * prod(access.sizes[d + 1:]) for c, d in zip(position, access.dims, strict=True) if d >= 0]

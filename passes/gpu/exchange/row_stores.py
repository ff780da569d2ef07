"""Stores of rows of 16-bit elements that begin anywhere: in words that take elements of two lanes.

    lane                0                 1                2            3
    holds            0 1 2 3           4 5 6 7         8 9 10 11   12 13 14 15
    row 0           [0 1 2 3]         [4 5 6 7]       [8 9 10 11] [12 13 14 15]     a word of each lane
    row 1             0 1 2         [3 4 5 6]        [7 8 9 10] [11 12 13 14]  15   a word with what the lane before has

A word is as long as what a thread holds of neighbours, 16 bytes at most. Where rows are no multiple of it, a row begins
`shift` elements behind a word, in each row others, which threads read off their addresses. Words of neighbouring lanes
begin with a sector of memory, so that none is written in parts: a word's elements then come from lanes further ahead.
What is left at the ends of a tile's rows, or by a mask, goes alone.
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
from xcc.passes.shared.values import conjunction, index, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

BYTES, WORD, SECTOR = 2, 4, 32     # of an element, a register, and what memory is written by
SGE = arith_d.CmpIPredicate.sge


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
        kept = sorted((d, i) for i, d in enumerate(access.dims) if d >= 0)
        self.limits = [] if mask is None else [(i, k.get(v)) for (_, i), v in zip(kept, mask.operands, strict=True)]
        self.unit = min(SECTOR // BYTES, self.run * self.lanes)
        self.lane = arith_d.index_cast(_i32(), k.code.lane)
        self.place = arith_d.andi(self.lane, _number(self.lanes - 1))       # along the row
        self.memref = self.view(self._shift)
        self.held: dict[tuple[int, ...], list[Value]] = {}      # the words of what is stored already, by position

    def _shift(self, first: Value) -> Value:
        """Elements from where a word begins to that where the row of the thread's first element does."""
        along = arith_d.muli(arith_d.andi(self.k.code.lane, index(self.lanes - 1)), index(self.run))
        self.first = arith_d.andi(arith_d.subi(first, along), index(self.unit - 1))
        return self.first

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
        inside = arith_d.andi(arith_d.addi(self.first, index(offset % self.unit)), index(self.unit - 1))
        at, shift = arith_d.subi(place, inside), arith_d.index_cast(_i32(), inside)
        ahead = arith_d.shrui(shift, _number(self.run.bit_length() - 1))      # lanes to that of which the word is
        moved = arith_d.andi(shift, _number(self.run - 1))
        joined = self._joined(words, before, ahead, moved)
        left, row = self._left(group[0])
        last = column + step not in self.columns
        begun, own = (None if before is not None else
                      arith_d.cmpi(SGE, arith_d.muli(self.place, _number(self.run)), n) for n in (shift, moved))
        whole = conjunction((begun, _reaches(left, self.run, shift), row))
        guarded(whole, lambda: vector_d.store(joined, self.memref, [at], alignment=self.run * BYTES))
        beyond = [arith_d.cmpi(SGE, _number(self.lanes - 1 - n), arith_d.addi(self.place, ahead)) if last else None
                  for n in (0, 1)]
        stored = [conjunction((own, beyond[0], _reaches(left, self.run, moved))),
                  conjunction((beyond[1], _reaches(left, 2 * self.run, moved)))]
        if any(t is not None for t in stored):
            self._store_alone(group, piece, place, [_true() if t is None else t for t in stored], moved, left, row)

    def _left(self, register: int) -> tuple[Value | None, Value | None]:
        """Elements that the mask leaves from that of `register` on in its row, and whether it leaves any of the row."""
        left = row = None
        for dim, limit in self.limits:
            behind = arith_d.subi(arith_d.minsi(limit, index(self.layout.shape[dim])),
                                  self.k.code.coordinate(self.layout, register, dim))
            if dim == self.dim:
                left = arith_d.index_cast(_i32(), behind)
            else:
                row = conjunction((row, arith_d.cmpi(SGE, behind, index(1))))
        return left, row

    def _store_alone(self, group: list[int], piece: Value, place: Value, stored: list[Value], moved: Value,
                     left: Value | None, row: Value | None) -> None:
        """Elements of `piece` whose word is not `stored`, the one that begins them or the next, of the last `moved`."""
        def alone() -> None:
            for n, element in enumerate(registers_of(piece)):
                own = arith_d.cmpi(SGE, _number(self.run - 1 - n), moved)
                missing = arith_d.xori(arith_d.select(own, *stored), _true())
                guarded(conjunction((missing, _reaches(left, n + 1, None))),
                        partial(memref_d.store, element, self.memref, [arith_d.addi(place, index(n))]))

        guarded(conjunction((arith_d.xori(arith_d.andi(*stored), _true()), row)), alone)

    def _joined(self, words: list[Value], before: list[Value] | None, ahead: Value, moved: Value) -> Value:
        """The last `moved` elements of the lane ahead + 1 before, then those of the lane `ahead` before. Lanes at the
        end send what their register before holds to those at the beginning."""
        line = [] if self.unit > self.run else list(words)
        for n in (0, 1) if self.unit > self.run else (1,):
            by = arith_d.addi(ahead, _number(n))
            sent = words
            if before is not None:
                turns = arith_d.cmpi(SGE, arith_d.addi(self.place, by), _number(self.lanes))
                sent = [arith_d.select(turns, b, w) for b, w in zip(before, words, strict=True)]
            ring = arith_d.andi(arith_d.subi(self.place, by), _number(self.lanes - 1))
            source = arith_d.addi(arith_d.subi(self.lane, self.place), ring)
            line = [*(emit_shuffle(self.k.chip.warp, w, None, source) for w in sent), *line]
        for bit in reversed(range(1, (self.run - 1).bit_length())):
            if 1 << bit >= self.access.aligned:
                test, apart = _is_set(moved, bit), 1 << bit - 1
                line = [*line[:apart], *(arith_d.select(test, a, b) for a, b in zip(line, line[apart:], strict=False))]
        if self.access.aligned == 1:
            odd, half = _is_set(moved, 0), _number(16)
            line = [*line[:1], *(arith_d.select(odd, arith_d.ori(arith_d.shli(b, half), arith_d.shrui(a, half)), b)
                                 for a, b in zip(line, line[1:], strict=False))]
        return vector_d.bitcast(vec(self.run, self.access.element), from_registers(line[len(words):]))


def _reaches(left: Value | None, elements: int, but: Value | None) -> Value | None:
    """Whether `elements`, without the first `but`, are `left`; None where nothing limits them."""
    if left is None:
        return None
    needed = _number(elements)
    return arith_d.cmpi(SGE, left, needed if but is None else arith_d.subi(needed, but))


def _true() -> Value:
    return arith_d.constant(ir.IntegerType.get_signless(1), 1)


def _words(piece: Value) -> list[Value]:
    return registers_of(vector_d.bitcast(vec(ir.VectorType(piece.type).shape[0] * BYTES // WORD, _i32()), piece))


def _i32() -> Type:
    return ir.IntegerType.get_signless(32)


def _number(n: int) -> Value:
    return arith_d.constant(_i32(), n)


def _is_set(value: Value, bit: int) -> Value:
    return arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(value, _number(1 << bit)), _number(0))


def _offset(access: Access, position: tuple[int, ...]) -> list[int]:
    """What each coordinate of a tile's position adds to an element's place in memory."""
    return [c * prod(access.sizes[d + 1:]) for c, d in zip(position, access.dims, strict=True) if d >= 0]

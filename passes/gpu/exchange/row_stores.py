"""Stores of rows of 16-bit elements that begin at any element: in words of two, of which those of odd rows are of two
lanes.

    lane            0         1         2    ...    31
    holds          0 1       2 3       4 5        62 63
    row 0         [0 1]     [2 3]     [4 5]      [62 63]        a word of each lane
    row 1        0 [1 2]     [3 4]     [5 6]          63        a word with the next lane's first; ends alone

In an odd number of columns each other row begins between two words. Element by element each lane writes half of a word,
and each sector of memory is written twice. Where rows that a register belongs to are known to be even or odd, lanes of
odd ones take the first element of the next lane. What a mask leaves of a word is stored alone.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir, maker, memref_d, vector_d
from xcc.passes.gpu.exchange.lane_exchange import emit_shuffle
from xcc.passes.gpu.index.index_values import divisor
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

HALF = 2        # bytes of half a word


def write(k: KernelBuilder, op: Operation) -> None:
    """vector.transfer_write"""
    value = op.operands[0]
    layout = k.layout(value)
    access = Access(op, k.chip.vector_bytes)
    transfer = (OddRows if OddRows.fits(op, access, layout) else Transfer)(k, op, access, layout)

    def store() -> None:
        for batch in k.pieces.batches(op, value, transfer.groups):
            held = [r for group in batch for r in group]
            piece = k.pieces.get(value, held)
            for group in batch:
                transfer.store(group, select_registers(piece, [held.index(r) for r in group]))

    guarded(k.code.first_copy(layout), store)


class OddRows(Transfer):
    """The stores of one thread for a transfer_write whose rows lanes have side by side, two elements each."""

    def __init__(self, k: KernelBuilder, op: Operation, access: Access, layout: Layout) -> None:
        super().__init__(k, op, access, layout)
        self.dim, self.view_of = _along(access), None
        self.width, self.uniform = 2, False
        self.groups = register_groups(layout.registers, [layout.basis("register").index(_unit(layout, self.dim))])
        mask = maker(op.operands[len(op.operands) - 1], "vector.create_mask") if self.mask is not None else None
        self.limit = None if mask is None else k.get(mask.operands[len(mask.operands) - 1])
        self.odd = {g[0]: sum(_offset(access, layout.at(register=g[0]))) % 2 == 1 for g in self.groups}
        self.view_of, self.memref = self.memref, self.view()

    @staticmethod
    def fits(op: Operation, access: Access, layout: Layout) -> bool:
        """Whether lanes lie along rows that may begin in the middle of a word, each register's at a known place."""
        dim = _along(access)
        if access.bytes != HALF or access.aligned != 1 or dim < 0 or any(n < 0 for n in access.sizes[1:]):
            return False
        if list(op.attributes["operandSegmentSizes"])[-1] \
                and maker(op.operands[len(op.operands) - 1], "vector.create_mask") is None:
            return False
        unit = _unit(layout, dim)
        lanes = [tuple(c * 2 << n for c in unit) for n in range(len(layout.basis("lane")))]
        strides = [prod(access.sizes[d + 1:]) for d in range(len(access.sizes))]
        return unit in layout.basis("register") and list(layout.basis("lane")) == lanes \
            and not any(sum(_offset(access, v)) % 2 for v in layout.basis("warp")) and not layout.copies("warp") \
            and all(divisor(i) * stride % 2 == 0 for i, stride in zip(access.indices, strides, strict=True)) \
            and ir.MemRefType(access.memref.type).layout == ir.AffineMapAttr.get(
                ir.AffineMap.get_identity(len(access.sizes)))

    def indices(self, register: int) -> list[Value]:
        """In the view of what lies behind the thread's first element, once there is one."""
        if self.view_of is None:
            return super().indices(register)
        return [index(sum(_offset(self.access, self.layout.at(register=register))))]

    def store(self, group: list[int], piece: Value) -> None:
        if not self.odd[group[0]]:
            super().store(group, piece)
            return
        k, i32 = self.k, ir.IntegerType.get_signless(32)
        first, second = registers_of(piece)
        own = vector_d.extract(vector_d.bitcast(vec(1, i32), piece), [], [0])
        lane = arith_d.index_cast(i32, arith_d.andi(arith_d.addi(k.code.lane, index(1)), index(k.chip.warp - 1)))
        other = vector_d.bitcast(piece.type, from_registers([emit_shuffle(k.chip.warp, own, None, lane)]))
        whole = arith_d.cmpi(arith_d.CmpIPredicate.ne, k.code.lane, index(k.chip.warp - 1))
        begins = arith_d.cmpi(arith_d.CmpIPredicate.eq, k.code.lane, index(0))
        alone = arith_d.cmpi(arith_d.CmpIPredicate.eq, k.code.lane, index(k.chip.warp - 1))
        if self.mask is not None:
            behind = arith_d.addi(k.code.coordinate(self.layout, group[1], self.dim), index(1))
            both = arith_d.andi(self.mask[group[1]], arith_d.cmpi(arith_d.CmpIPredicate.slt, behind, self.limit))
            whole = arith_d.andi(whole, both)
            alone = arith_d.andi(self.mask[group[1]], arith_d.xori(whole, arith_d.constant(whole.type, 1)))
            begins = arith_d.andi(begins, self.mask[group[0]])
        word = from_registers([second, registers_of(other)[0]])
        guarded(whole, lambda: vector_d.store(word, self.memref, self.indices(group[1]), alignment=2 * HALF))
        for test, register, element in ((begins, group[0], first), (alone, group[1], second)):
            guarded(test, partial(memref_d.store, element, self.memref, self.indices(register)))


def _along(access: Access) -> int:
    """The vector dim along rows; -1 where there is none."""
    return next((i for i, d in enumerate(access.dims) if d == len(access.sizes) - 1), -1)


def _unit(layout: Layout, dim: int) -> tuple[int, ...]:
    return tuple(int(d == dim) for d in range(len(layout.shape)))


def _offset(access: Access, position: tuple[int, ...]) -> list[int]:
    """What each coordinate of a tile's position adds to an element's place in memory."""
    return [c * prod(access.sizes[d + 1:]) for c, d in zip(position, access.dims, strict=True) if d >= 0]

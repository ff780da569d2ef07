"""Rows of 16-bit elements that begin anywhere within words: where, and what of them a mask leaves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Type, Value, arith_d, ir, memref_d, vector_d
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import register_groups, registers_of
from xcc.passes.gpu.memory.access import HALF, Access, limits_of
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.shared.values import conjunction, index

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

WORD = 4        # bytes of a register
SGE = arith_d.CmpIPredicate.sge


class RowWords(Transfer):
    """The accesses of one thread for a transfer op whose rows begin within words of `run` elements.

    Attributes:
        run, lanes: elements of a word, and lanes along a row.
        dim: the vector dim that walks a row.
        groups: registers of a word each.
    """

    def __init__(self, k: KernelBuilder, op: Operation, access: Access, layout: Layout) -> None:
        super().__init__(k, op, access, layout)
        self.run, self.lanes = access.shifted(layout)
        self.dim = access.along
        self.groups = register_groups(layout.registers, layout.contiguous(self.run, self.dim)[1])
        limits = limits_of(op.operands[len(op.operands) - 1]) if self.mask is not None else None
        kept = [i for _, i in sorted((d, i) for i, d in enumerate(access.dims) if d >= 0)]
        self.limits = [(i, index(n) if isinstance(n, int) else k.get(n))
                       for i, n in zip(kept, limits or [], strict=limits is not None)]

    def at(self, first: Value, position: Sequence[int], unit: int) -> tuple[Value, Value]:
        """Elements from where a unit of memory begins, `first` ahead of the tile's first element, to the element at
        `position` of the tile; and those of them that are behind the last unit that begins ahead of it."""
        sizes = self.access.sizes
        moves = [(c, d) for c, d in zip(position, self.access.dims, strict=True) if d >= 0 and c]
        known = sum(c * prod(sizes[d + 1:]) for c, d in moves if min(sizes[d + 1:], default=0) >= 0)
        at, behind = arith_d.addi(first, index(known)), arith_d.addi(first, index(known % unit))
        for c, d in moves:
            if min(sizes[d + 1:], default=0) < 0:
                apart = index(c)
                for inner in range(d + 1, len(sizes)):
                    apart = arith_d.muli(apart, self.size(inner))
                at, behind = arith_d.addi(at, apart), arith_d.addi(behind, apart)
        return at, arith_d.andi(behind, index(unit - 1))

    def size(self, dim: int) -> Value:
        """The size of the array along `dim`."""
        n = self.access.sizes[dim]
        return index(n) if n >= 0 else memref_d.dim(self.k.get(self.access.memref), index(dim))

    def left(self, register: int) -> tuple[Value | None, Value | None]:
        """Elements that the mask leaves from that of `register` on in its row, and whether it leaves any of the row."""
        left = row = None
        for dim, limit in self.limits:
            behind = arith_d.subi(arith_d.minsi(limit, index(self.layout.shape[dim])),
                                  self.k.code.coordinate(self.layout, register, dim))
            if dim == self.dim:
                left = arith_d.index_cast(i32(), behind)
            else:
                row = conjunction((row, arith_d.cmpi(SGE, behind, index(1))))
        return left, row


def words_of(piece: Value) -> list[Value]:
    """The registers that hold a vector of 16-bit elements."""
    return registers_of(vector_d.bitcast(
        ir.VectorType.get([ir.VectorType(piece.type).shape[0] * HALF // WORD], i32()), piece))


def joined_halves(low: Value, high: Value) -> Value:
    """The second element of the word `low` and the first one of `high`."""
    half = number(16)
    return arith_d.ori(arith_d.shli(high, half), arith_d.shrui(low, half))


def i32() -> Type:
    return ir.IntegerType.get_signless(32)


def number(n: int) -> Value:
    return arith_d.constant(i32(), n)


def is_set(value: Value, bit: int) -> Value:
    """Whether bit number `bit` of an i32 is set."""
    return arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(value, number(1 << bit)), number(0))

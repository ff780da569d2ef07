"""Per-thread code of ``tile.accumulate``: updates that go to computed places of shared memory, in order.

A column is one warp's, whose lanes hold neighbouring updates. Lanes that name the same place are found by a vote on
each bit of it; the first of them combines its update in the first round, the second in the next, and so on, so that a
place gets its updates in order and no two threads meet in it. Mostly one round does. Where the last of a place stays,
it alone is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, math_d, memref_d, scf_d
from xcc.passes.gpu.layout.linear import Layout, log2
from xcc.passes.gpu.layout.registers import guarded, registers_of
from xcc.passes.gpu.layout.tile_ops import shape_of
from xcc.passes.shared.combining import combiner
from xcc.passes.shared.values import index

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

ACCUMULATE = "tile.accumulate"

_I = arith_d.CmpIPredicate


def accumulated_layout(op: Operation, warp: int, warps: int) -> Layout:
    """Rows along lanes, columns along warps; what is left in registers, rows first."""
    rows, columns = shape_of(op.operands[1])
    row_bits = [(1 << b, 0) for b in range(log2(rows))]
    column_bits = [(0, 1 << b) for b in range(log2(columns))]
    lanes, wide = log2(warp), log2(warps)
    none = (0, 0)
    return Layout.make((rows, columns), {
        "register": row_bits[lanes:] + column_bits[wide:],
        "lane": row_bits[:lanes] + [none] * max(0, lanes - len(row_bits)),
        "warp": column_bits[:wide] + [none] * max(0, wide - len(column_bits))})


def alloc(k: KernelBuilder, op: Operation) -> None:
    """memref.alloc of shared memory: the workgroup's from here to the kernel's end."""
    kind = ir.MemRefType(op.results[0].type)
    (count,) = kind.shape
    k.shared.begin()
    k.values[op.results[0]] = k.shared.buffer(count, kind.element_type)
    k.shared.reserved += -(-count * kind.element_type.width // 8 // 16) * 16


class _Rounds:
    """The code of one register's updates of all lanes of a warp."""

    def __init__(self, k: KernelBuilder, op: Operation) -> None:
        self.k, self.layout = k, k.layout(op.operands[1])
        self.memory = k.get(op.operands[0])
        self.places, self.updates = (registers_of(k.get(v)) for v in list(op.operands)[1:])
        self.bits = log2(ir.IntegerAttr(op.attributes["limit"]).value)
        self.stride = ir.IntegerAttr(op.attributes["stride"]).value
        kind = ir.StringAttr(op.attributes["kind"]).value
        self.combine = None if kind == "last" else combiner(kind, self.updates[0].type)
        self.mask = ir.IntegerType.get_signless(k.code.warp)
        self.only = k.code.first_copy(self.layout)
        mine = arith_d.shli(self._mask(1), arith_d.index_cast(self.mask, k.code.lane))
        self.below = arith_d.subi(mine, self._mask(1))      # lanes that come before this one
        self.above = arith_d.xori(arith_d.ori(self.below, mine), self._mask(-1))

    def _mask(self, value: int) -> Value:
        return arith_d.constant(self.mask, ir.IntegerAttr.get(self.mask, value))

    def _vote(self, condition: Value) -> Value:
        return ir.Operation.create("gpu.ballot", results=[self.mask], operands=[condition]).result

    def _number(self, value: int) -> Value:
        i32 = ir.IntegerType.get_signless(32)
        return arith_d.constant(i32, ir.IntegerAttr.get(i32, value))

    def emit(self, register: int) -> None:
        place, update = self.places[register], self.updates[register]
        active = arith_d.cmpi(_I.sge, place, self._number(0))
        if self.only is not None:
            active = arith_d.andi(active, self.only)
        column = arith_d.muli(self.k.code.coordinate(self.layout, register, 1), index(self.stride))
        at = arith_d.addi(column, arith_d.index_cast(ir.IndexType.get(), place))
        if self.combine is None:
            last = arith_d.cmpi(_I.eq, self._meet(place, active, self.above), self._mask(0))
            guarded(arith_d.andi(active, last), partial(memref_d.store, update, self.memory, [at]))
            self._wait()
        else:
            self._in_turn(active, self._before(place, active), partial(self._update, self.combine, update, at))

    def _update(self, combine: Any, update: Value, at: Value) -> None:
        memref_d.store(combine(memref_d.load(self.memory, [at]), update), self.memory, [at])

    def _in_turn(self, active: Value, turn: Value, write: Callable[[], None]) -> None:
        """``write()`` in the lanes whose turn is 0, then in those whose turn is 1, and so on."""
        first = self._number(0)
        guarded(arith_d.andi(active, arith_d.cmpi(_I.eq, turn, first)), write)
        self._wait()
        loop = scf_d.WhileOp([first.type], [self._number(1)])
        before, after = loop.before.blocks.append(first.type), loop.after.blocks.append(first.type)
        with ir.InsertionPoint(before):
            (n,) = before.arguments
            left = self._vote(arith_d.andi(active, arith_d.cmpi(_I.sge, turn, n)))
            scf_d.ConditionOp(arith_d.cmpi(_I.ne, left, self._mask(0)), [n])
        with ir.InsertionPoint(after):
            (n,) = after.arguments
            guarded(arith_d.andi(active, arith_d.cmpi(_I.eq, turn, n)), write)
            self._wait()
            scf_d.YieldOp([arith_d.addi(n, self._number(1))])

    def _before(self, place: Value, active: Value) -> Value:
        """How many lanes before this one have the same place."""
        count = math_d.ctpop(self._meet(place, active, self.below))
        return count if self.mask.width == 32 else arith_d.trunci(ir.IntegerType.get_signless(32), count)

    def _meet(self, place: Value, active: Value, among: Value) -> Value:
        """Those of the lanes `among` that are active and have the same place."""
        same = arith_d.andi(self._vote(active), among)
        for bit in range(self.bits):
            moved = arith_d.shli(place, self._number(31 - bit))
            there = arith_d.cmpi(_I.slt, moved, self._number(0))
            vote = self._vote(there)
            same = arith_d.andi(same, arith_d.select(there, vote, arith_d.xori(vote, self._mask(-1))))
        return same

    def _wait(self) -> None:
        """All lanes of the warp have written."""
        self.k.code.primitives.lane_barrier()


def accumulate(k: KernelBuilder, op: Operation) -> None:
    """tile.accumulate"""
    rounds = _Rounds(k, op)
    for register in range(rounds.layout.registers):
        rounds.emit(register)

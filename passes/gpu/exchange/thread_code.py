"""The coordinates of one thread of a gpu.func under construction, and what it holds of a tile."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from xcc._mlir import Block, InsertionPoint, Value, arith_d, gpu_d, ir
from xcc.passes.gpu.exchange.lane_exchange import emit_shuffle
from xcc.passes.gpu.layout.linear import Layout, bits
from xcc.passes.shared.values import index
from xcc.targets.base import Chip

Turn = tuple[Any, int] | None


class ThreadCode:
    """Thread ids and cached coordinates, computed at the start of the function.

    Attributes:
        chip: what the code is for; `warp`: its threads of a warp.
        primitives: what the chip waits with (`Chip.primitives`).
        instances: of the tile program that the workgroup computes, a warp each; `instance`: which one this warp has.
        thread, warp_id: of those that compute an instance.
    """

    def __init__(self, entry: Block, chip: Chip, instances: int = 1) -> None:
        self.chip, self.warp, self.instances = chip, chip.warp, instances
        self.primitives = importlib.import_module(chip.primitives)
        self._uniform: Any = None
        self._parts: dict[tuple[tuple[str, tuple[int, ...]], ...], Value | None] = {}
        with ir.InsertionPoint(entry):
            self.thread = gpu_d.thread_id(gpu_d.Dimension.x)
            self.lane = arith_d.andi(self.thread, index(self.warp - 1))
            self.warp_id = arith_d.shrui(self.thread, index(self.warp.bit_length() - 1))
            self.instance = self.warp_id
            if instances > 1:
                self.thread, self.warp_id = self.lane, index(0)
            self._anchor = index(0).owner

    @property
    def uniform_warp(self) -> Any:
        """The warp's number, read from its first lane: code generators then know that all lanes have the same."""
        if self._uniform is None:
            with self.at_entry():
                i32 = ir.IntegerType.get_signless(32)
                first = emit_shuffle(self.warp, arith_d.index_cast(i32, self.warp_id), None, arith_d.constant(i32, 0))
                self._uniform = arith_d.index_cast(ir.IndexType.get(), first)
        return self._uniform

    def at_entry(self) -> InsertionPoint:
        """An insertion point ahead of all other code."""
        return ir.InsertionPoint(self._anchor)

    def part(self, layout: Layout, dim: int) -> Value | None:
        """This thread's share of coordinate `dim` (register 0); None where it is always 0."""
        columns = tuple((name, tuple(v[dim] for v in layout.basis(name))) for name in ("lane", "warp"))
        if columns not in self._parts:
            with self.at_entry():
                self._parts[columns] = self._gather_bits(columns)
        return self._parts[columns]

    def _gather_bits(self, columns: tuple[tuple[str, tuple[int, ...]], ...]) -> Value | None:
        return self.spread([(self.lane if name == "lane" else self.warp_id, values) for name, values in columns])

    def spread(self, columns: list[tuple[Value, Sequence[int]]]) -> Value | None:
        """The XOR of the vectors whose bits are set: columns are (index value, a vector for each of its bits)."""
        terms: list[tuple[Value, int]] = []
        for source, values in columns:
            i = 0
            while i < len(values):
                if not values[i] or values[i] & (values[i] - 1):
                    for b in bits(values[i]):
                        terms.append((self._field(source, i, 1, b), 1 << b))
                    i += 1
                    continue
                count = 1
                while i + count < len(values) and values[i + count] == values[i] << count:
                    count += 1
                terms.append((self._field(source, i, count, values[i].bit_length() - 1),
                              ((1 << count) - 1) * values[i]))
                i += count
        total, seen = None, 0
        for value, mask in terms:
            if total is None:
                total = value
            else:
                total = arith_d.addi(total, value) if not seen & mask else arith_d.xori(total, value)
            seen |= mask
        return total

    @staticmethod
    def _field(source: Value, low: int, count: int, to: int) -> Value:
        value = arith_d.andi(source, index(((1 << count) - 1) << low))
        if to > low:
            return arith_d.shli(value, index(to - low))
        return arith_d.shrui(value, index(low - to)) if to < low else value

    def coordinate(self, layout: Layout, register: int, dim: int) -> Value:
        """Coordinate `dim` of the element in `register`."""
        fixed = layout.at(register=register)[dim]
        part = self.part(layout, dim)
        if part is None:
            return index(fixed)
        if not fixed:
            return part
        moving = 0
        for name in ("lane", "warp"):
            for v in layout.basis(name):
                moving |= v[dim]
        return arith_d.xori(part, index(fixed)) if moving & fixed else arith_d.addi(part, index(fixed))

    def first_copy(self, layout: Layout) -> Value | None:
        """An i1 that is true in one thread of those that hold the same elements; None when none do."""
        condition = None
        for name, source in (("lane", self.lane), ("warp", self.warp_id)):
            mask = layout.copies(name)
            if mask:
                test = arith_d.cmpi(arith_d.CmpIPredicate.eq, arith_d.andi(source, index(mask)), index(0))
                condition = test if condition is None else arith_d.andi(condition, test)
        return condition

    def offset_of(self, layout: Layout, register: int, fixed: int = 0, start: Value | None = None,
                  turn: Turn = None) -> Value | None:
        """The offset of `register` under a 1-D layout, with the constant `fixed` XORed in, from `start` on.

        turn: a value that is XORed in too, and the bits that it may have.
        """
        constant = layout.at(register=register)[0] ^ fixed
        part = self.part(layout, 0)
        if part is None and turn is None:
            return index(constant) if start is None else arith_d.addi(start, index(constant))
        moving = 0
        for name in ("lane", "warp"):
            for v in layout.basis(name):
                moving |= v[0]
        if turn is not None:
            part = turn[0] if part is None else arith_d.xori(part, turn[0])
            moving |= turn[1]
        # the thread's bits and the constant's bits apart: an addition folds into the address
        apart, crossed = constant & ~moving, constant & moving
        value = arith_d.xori(part, index(crossed)) if crossed else part
        if start is not None:
            value = arith_d.addi(value, start)
        return arith_d.addi(value, index(apart)) if apart else value

    def barrier(self) -> None:
        """All threads that compute the instance have read and written shared memory."""
        if self.instances > 1:
            self.primitives.lane_barrier()
        else:
            self.primitives.barrier()

    def memory_barrier(self) -> None:
        """Likewise all memory. What lanes of one warp wrote they see in order."""
        if self.instances > 1:
            self.primitives.lane_barrier()
        else:
            gpu_d.barrier()

    def keep_order(self) -> None:
        """Keeps the code generator from moving instructions across this point, where it would."""
        self.primitives.keep_order()

"""Which values of @main share memory: what a block yields is made where it is wanted, updates work in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc.dialects import xt
from xcc.passes.host.value_buffers import ValueBuffers
from xcc.passes.xt.graph.load_time import view_root
from xcc.passes.xt.graph.memory_uses import MemoryUses
from xcc.passes.xt.graph.op_graph import IN_PLACE, short_name
from xcc.runtime.program import Copy, Statement

__all__ = ["SharedMemory", "Shares", "terminator"]

Shares = Mapping[str, Sequence[tuple[int, int]]]


class SharedMemory(ValueBuffers):
    """Buffers of values, of which some share memory. `at_load`: the ops that run once, when the model is loaded;
    `shares`: for kernels the operands and results that may."""

    def __init__(self, at_load: frozenset[Any], shares: Shares) -> None:
        super().__init__()
        self.shares = shares
        self.at_load = at_load
        self._known_uses: dict[Any, MemoryUses] = {}

    def place(self, block: Any, yielded: Sequence[Any], targets: Sequence[int],
               replaced: Sequence[Any]) -> list[tuple[Any, int]]:
        """Says where results of `block` are wanted; returns the values that have to be copied there."""
        copied, uses = [], self.uses(block)
        # where a value is wanted twice, it is made in the memory of the argument that it replaces
        for v, t, argument in sorted(zip(yielded, targets, replaced, strict=True), key=lambda each: each[2] is None):
            versions, first = self._versions(v, block, uses)
            free = argument is None or _same(first, argument) or versions \
                and uses.end_before(argument, versions[-1].owner.operation)
            if versions and free:
                self.wanted.update(dict.fromkeys(versions, t))
            else:
                copied.append((v, t))
        return copied

    def _versions(self, value: Any, block: Any, uses: MemoryUses) -> tuple[list[Any], Any]:
        """`value`, and what it was before each update in place, the latest first, as far as all of them may have one
        memory; and the value before these, None where that keeps its own."""
        found: list[Any] = []
        root = view_root(value)
        while self.made_in(root, block) and root not in self.wanted:
            found.append(root)
            operand = self._overwritten(root)
            if operand is None or not uses.end_at(root.owner.operands[operand], root.owner.operation, operand):
                return found, None
            root = view_root(root.owner.operands[operand])
        return found, root

    def _overwritten(self, value: Any) -> int | None:
        """Which operand of the op that makes `value` may have the same memory."""
        op = value.owner.operation
        number = list(op.results).index(value)
        if short_name(op) == "dispatch":
            if IN_PLACE in op.attributes:
                return 0
            return next((a for a, r in self.shares.get(xt.attrs_of(op).kernel, ()) if r == number), None)
        carried = len(xt.grouped_operands(op)[0]) if short_name(op) in ("scan", "while") else 0
        return number if number < carried else None

    def carry(self, block: Any, values: Sequence[Any], carried: Sequence[int]) -> None:
        """Has updates in place of what a loop carries, its arguments, work on the carried buffers."""
        for v, t, argument in zip(values, carried, block.arguments, strict=False):
            versions, first = self._versions(v, block, self.uses(block))
            if versions and _same(first, argument):
                self.wanted.update(dict.fromkeys(versions, t))

    def held(self, op: Any, number: int) -> tuple[list[Statement], int]:
        """The buffer of result `number` of `op`, which holds the operand of this number when `op` begins: the operand's
        own where nobody reads that later, else another, and the copy."""
        result, old = op.results[number], op.operands[number]
        if result not in self.wanted and old.type == result.type and self.made_in(view_root(old), op.block) \
                and self.uses(op.block).end_at(old, op, number):
            self.buffer_of[result] = self.buffer_of[old]
        else:
            self.target(result)
        source, target = self.buffer_of[old], self.buffer_of[result]
        return [] if self.root(source) == self.root(target) else [Copy(source, target)], target

    def all_held(self, op: Any, count: int) -> tuple[list[Statement], list[int]]:
        """:meth:`held` of the first results, as many as a loop carries."""
        held = [self.held(op, n) for n in range(count)]
        return [s for copies, _ in held for s in copies], [target for _, target in held]

    def next_state(self, values: Sequence[Any], carried: Sequence[int]) -> list[Statement]:
        """Copies `values` to `carried` as if at once: one that is another carried buffer goes through a temporary."""
        first: list[Statement] = []
        then: list[Statement] = []
        for v, t in zip(values, carried, strict=True):
            source = self.buffer_of[v]
            if self.root(source) == self.root(t):
                continue
            if self.root(source) in map(self.root, carried):
                saved = self.new(v, "temp")
                first.append(Copy(source, saved))
                source = saved
            then.append(Copy(source, t))
        return first + then

    def made_in(self, value: Any, block: Any) -> bool:
        """Whether an op of `block` itself writes `value`, in each run, to a buffer of its own."""
        owner = getattr(value.owner, "operation", None)
        if owner is None or short_name(owner) in ("weight", "constant") or owner in self.at_load:
            return False
        return bool(owner.block == block)

    def uses(self, block: Any) -> MemoryUses:
        """Who reads what in `block`."""
        if block not in self._known_uses:
            self._known_uses[block] = MemoryUses(block)
        return self._known_uses[block]


def _same(a: Any, b: Any) -> bool:
    return a is not None and bool(a == b)


def terminator(block: Any) -> list[Any]:
    """What `block` returns or yields."""
    return list(block.operations[len(block.operations) - 1].operation.operands)

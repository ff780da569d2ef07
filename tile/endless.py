"""Loops that go on forever, in the evaluation of a tile program: found where a turn begins as one before it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xcc._mlir import Block, Operation, Value
from xcc.dialects.tile.op import op_class

__all__ = ["Turns", "deciding"]

LONG = 16       # turns, from which on is looked whether one before comes back


def deciding(loop: Operation) -> list[int]:
    """Which of the values that an ``scf.while`` carries from turn to turn decide what it does: those that its
    condition, reads, writes or loops inside depend on. A counter that nothing looks at decides nothing."""
    before, after = (r.blocks[0] for r in loop.regions)
    needed: set[Value] = set()
    asked, given = (_last(b) for b in (before, after))
    todo = [asked.operands[0]] + [v for block in (before, after) for v in _acted_on(block)]
    while todo:
        value = todo.pop()
        if value in needed:
            continue
        needed.add(value)
        if not isinstance(value.owner, Block):
            todo += value.owner.operation.operands
        elif value.owner == before:
            todo.append(given.operands[value.arg_number])
        elif value.owner == after:
            todo.append(asked.operands[value.arg_number + 1])
    return [i for i, a in enumerate(before.arguments) if a in needed]


def _last(block: Block) -> Operation:
    return list(block.operations)[-1].operation


def _acted_on(block: Block) -> list[Value]:
    """What operations of a block use that do more than to compute their results."""
    found: list[Value] = []
    for op in block.operations:
        o = op.operation
        inner = [b for r in o.regions for b in r.blocks]
        cls = op_class(o)
        if inner or (cls is not None and (cls.effects or not o.results)):
            found += o.operands
        for b in inner:
            found += [v for x in b.operations for v in x.operation.operands] + _acted_on(b)
    return found


class Turns:
    """The turns of a loop: each is compared with a remembered one, which is the last of 16, 32, 64 and so on (Brent,
    1980)."""

    def __init__(self, loop: Operation, memory: Callable[[], list[bytes]]) -> None:
        self._loop, self._memory = loop, memory
        self._count, self._deciding = 0, list[int]()
        self._carried: list[bytes] | None = None
        self._held: list[bytes] = []

    def again(self, carried: Sequence[object]) -> bool:
        """Whether a turn that begins with the values `carried`, and memory as it is, was there before."""
        self._count += 1
        if self._count < LONG:
            return False
        if self._count == LONG:
            self._deciding = deciding(self._loop)
        now = [np.asarray(carried[i]).tobytes() for i in self._deciding]
        if now == self._carried and self._memory() == self._held:
            return True
        if self._count & (self._count - 1) == 0:
            self._carried, self._held = now, self._memory()
        return False

"""Which ops of a block read the memory of a value: the value itself, or what views show of it."""

from __future__ import annotations

from collections.abc import Iterator

from xcc._mlir import Block, Operation, Value, maker
from xcc.dialects import xt
from xcc.passes.xt.graph.load_time import VIEWS, view_root
from xcc.passes.xt.graph.rewrite import name_of, producer

UPDATES = {"dynamic_update_slice": 1, "scatter_nd": 2, "scatter_elements": 2}
"""Ops that change some elements of their first operand, and which operand has the new ones."""

FIXED = ("weight", "constant", *VIEWS)


def constant_starts(op: Operation) -> tuple[int, ...]:
    """Where the box that a dynamic_update_slice replaces begins, where constants beside it say so; () elsewhere."""
    made = [producer(v, "constant") for v in list(op.operands)[2:]] if name_of(op) == "dynamic_update_slice" else []
    return () if any(m is None for m in made) else tuple(int(xt.attrs_of(m).value) for m in made if m is not None)


class MemoryUses:
    """The uses of values in `block`. A use inside a nested region counts for the op of the block that holds it.

    The block does not change meanwhile.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self._places: dict[Operation, int] = {op.operation: n for n, op in enumerate(block.operations)}

    def place(self, op: Operation) -> int:
        """Which op of the block `op` is, or is in; one that is elsewhere comes behind all."""
        while op not in self._places:
            if op.parent is None:
                return len(self._places)
            op = op.parent.operation
        return self._places[op]

    def maker(self, value: Value) -> Operation | None:
        """The op of this block that makes `value`; None for another value."""
        op = maker(value)
        return op if op is not None and op in self._places else None

    def owns(self, value: Value) -> bool:
        """Whether an op of this block writes the memory of `value`, in each run."""
        op = self.maker(view_root(value))
        return op is not None and name_of(op) not in FIXED

    def readers(self, value: Value) -> Iterator[tuple[Operation, int]]:
        """The ops that read the memory of `value`, and which of their operands it is."""
        values = [view_root(value)]
        while values:
            for use in values.pop().uses:
                op = use.owner.operation
                if name_of(op) in VIEWS:
                    values += op.results
                else:
                    yield op, use.operand_number

    def end_at(self, value: Value, op: Operation, operand: int = 0) -> bool:
        """Whether `op` of this block is the last that reads the memory of `value`, and reads it once, as `operand`."""
        last = self.place(op)
        later = [n if reader == op else -1 for reader, n in self.readers(value) if self.place(reader) >= last]
        return later == [operand]

    def end_before(self, value: Value, op: Operation) -> bool:
        """Whether all that reads the memory of `value` comes before `op` of this block."""
        return all(self.place(reader) < self.place(op) for reader, _ in self.readers(value))

"""Streams: pointwise operations between a large tile and the stores of it are emitted a few registers at a time.

    %y = arith.mulf %acc, %s                       piece of %r, piece of %y, piece of %z, store of these registers
    %r = vector.transfer_read                  ->  piece of %r, piece of %y, piece of %z, store of the next ones
    %z = arith.addf %y, %r                         ...
    vector.transfer_write %z

What is live at once is the tile and one piece of everything that is computed from it, not a tile of each.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import ir
from xcc.passes.gpu.analysis import Access, owner
from xcc.passes.gpu.assign_layouts import CONVERT, is_elementwise, is_vector
from xcc.passes.gpu.distribute_memory import Transfer
from xcc.passes.gpu.thread_code import from_registers, registers_of, select_registers

__all__ = ["PIECE", "Pieces"]

PIECE = 16      # registers of each value that are in flight


class Pieces:
    """The operations of one kernel that wait for the stores that use them."""

    def __init__(self, k: Any) -> None:
        self.k = k
        self.waiting: dict[Any, Any] = {}       # by result: operations not emitted yet
        self.made: dict[tuple[Any, tuple[int, ...]], Any] = {}
        self.transfers: dict[Any, Transfer] = {}
        self.streamed: dict[Any, bool] = {}
        self.computed: dict[Any, bool] = {}

    def defer(self, op: Any) -> bool:
        """Keeps `op` back when all that it is for are stores that take it piece by piece."""
        if len(op.results) != 1 or not self._streams(op):
            return False
        self.waiting[op.results[0]] = op
        return True

    def _streams(self, op: Any) -> bool:
        if op not in self.streamed:
            self.streamed[op] = self._can_stream(op)
        return self.streamed[op]

    def _can_stream(self, op: Any) -> bool:
        if not (op.name == "vector.transfer_read" or is_elementwise(op)) or not is_vector(op.results[0]):
            return False
        layout = self.k.layout(op.results[0])
        if layout.registers <= PIECE or self.k.code.first_copy(layout) is not None:
            return False
        if is_elementwise(op) and any(not is_vector(v) or self.k.layout(v) != layout for v in op.operands):
            return False
        users = [(u.owner.operation, u.operand_number) for u in op.results[0].uses]
        return bool(users) and all(
            user.block == op.block and (user.name == "vector.transfer_write" and number == 0 and self._computed(op)
                                        or is_elementwise(user) and len(user.results) == 1 and self._streams(user))
            for user, number in users)

    def _computed(self, op: Any) -> bool:
        """Whether `op` is computed from a contraction's tile; what is not has nothing live, and loads at once."""
        if op in self.computed:
            return self.computed[op]
        if op.name in ("scf.for", "vector.contract"):
            found = True
        elif op.name == CONVERT or is_elementwise(op):
            found = any(owner(v) is not None and self._computed(owner(v)) for v in op.operands)
        else:
            found = False
        self.computed[op] = found
        return found

    def get(self, value: Any, registers: list[int]) -> Any:
        """These registers of `value`, in this order."""
        op = self.waiting.get(value)
        if op is None:
            return select_registers(self.k.get(value), registers)
        key = value, tuple(registers)
        if key not in self.made:
            self.made[key] = self._load(op, registers) if op.name == "vector.transfer_read" else \
                self.k.elementwise_of(op, [self.get(v, registers) for v in op.operands], len(registers))
        return self.made[key]

    def _load(self, op: Any, registers: list[int]) -> Any:
        """The registers of a transfer_read: every access that holds one of them."""
        k = self.k
        access = Access(op, k.chip.vector_bytes)
        if op not in self.transfers:
            self.transfers[op] = Transfer.of(k, op)
        transfer = self.transfers[op]
        padding = k.get(op.operands[1 + len(access.sizes)])
        wanted = set(registers)
        found: dict[int, Any] = {}
        for group in transfer.groups:
            if wanted.intersection(group):
                piece = transfer.load(group, ir.VectorType(op.results[0].type).element_type, padding)
                found.update(zip(group, registers_of(piece), strict=True))
        return from_registers([found[r] for r in registers])

    def batches(self, groups: list[list[int]]) -> list[list[list[int]]]:
        """Groups of registers that are stored together, in batches of about PIECE registers."""
        count = max(1, PIECE // len(groups[0]))
        return [groups[i:i + count] for i in range(0, len(groups), count)]

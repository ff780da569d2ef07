"""Epilogues in pieces: what is pointwise between a large tile and its stores is emitted a few registers at a time.

    %y = arith.mulf %acc, %s                       piece of %r, piece of %y, piece of %z, store of these registers
    %r = vector.transfer_read                  ->  piece of %r, piece of %y, piece of %z, store of the next ones
    %z = arith.addf %y, %r                         ...
    vector.transfer_write %z

What is live at once is the tile and one piece of everything that is computed from it, not a tile of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xcc._mlir import ir
from xcc.passes.gpu.layout.registers import from_registers, registers_of, select_registers
from xcc.passes.gpu.layout.tile_ops import CONVERT, is_elementwise, is_vector, owner, words
from xcc.passes.gpu.memory.transfers import Transfer

__all__ = ["PIECE", "Pieces"]

PIECE = 16      # registers of each value that are in flight
LOADED = 36     # registers that wait for loads of later pieces
MOST_AHEAD = 4  # pieces
CORE_REGISTERS = 65536      # of an NVIDIA core
OTHERS = 60     # registers of a thread that a loop needs besides its results and what is loaded early


class Pieces:
    """The operations of one kernel that wait for the stores that use them."""

    def __init__(self, k: Any) -> None:
        self.k = k
        self.waiting: dict[Any, Any] = {}       # by result: operations not emitted yet
        self.made: dict[tuple[Any, tuple[int, ...]], Any] = {}
        self.transfers: dict[Any, Transfer] = {}
        self.early: dict[Any, dict[int, Any]] = {}      # by transfer_read: registers that are loaded already
        self.streamed: dict[Any, bool] = {}
        self.computed: dict[Any, bool] = {}
        self.sources: dict[Any, dict[tuple[int, ...], int]] = {}    # registers by position of broadcasts' operands

    def defer(self, op: Any) -> bool:
        """Keeps `op` back when all that it is for are stores that take it piece by piece."""
        if len(op.results) != 1 or not self._streams(op):
            return False
        self.waiting[op.results[0]] = op
        return True

    def stores(self, value: Any) -> bool:
        """Whether all that `value` is for are stores that take it piece by piece."""
        layout = self.k.layout(value)
        if layout.registers <= PIECE or self.k.code.first_copy(layout) is not None:
            return False
        return all(user.name == "vector.transfer_write" and number == 0 or self._streams(user)
                   for user, number in ((u.owner.operation, u.operand_number) for u in value.uses))

    def _streams(self, op: Any) -> bool:
        if op not in self.streamed:
            self.streamed[op] = self._can_stream(op)
        return self.streamed[op]

    def _can_stream(self, op: Any) -> bool:
        spread = self._spread(op)
        if not (op.name == "vector.transfer_read" or spread or is_elementwise(op)) or not is_vector(op.results[0]):
            return False
        layout = self.k.layout(op.results[0])
        if layout.registers <= PIECE:
            return False
        if op.name == "vector.transfer_read" and _barrier_behind(op):
            return False
        if is_elementwise(op) and any(not is_vector(v) or self.k.layout(v) != layout for v in op.operands):
            return False
        users = [(u.owner.operation, u.operand_number) for u in op.results[0].uses]
        return bool(users) and all(
            user.block == op.block and (user.name == "vector.transfer_write" and number == 0 and self._stored(op)
                                        or (is_elementwise(user) or self._spread(user)) and len(user.results) == 1
                                        and self._streams(user))
            for user, number in users)

    def _spread(self, op: Any) -> bool:
        """Whether `op` is a broadcast of a vector whose registers are taken as they are asked for (not where
        LLVM loads all at once that does not depend on a product)."""
        return op.name == "vector.broadcast" and is_vector(op.operands[0]) and not self.k.chip.llvm_schedules

    def _stored(self, op: Any) -> bool:
        return self.k.code.first_copy(self.k.layout(op.results[0])) is None and self._computed(op)

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
            if op.name == "vector.transfer_read":
                self.made[key] = self._load(op, registers)
            elif op.name == "vector.broadcast":
                wanted = [self._source(op, r) for r in registers]
                held = sorted(set(wanted))
                self.made[key] = select_registers(self.get(op.operands[0], held), [held.index(r) for r in wanted])
            else:
                self.made[key] = self.k.elementwise_of(op, [self.get(v, registers) for v in op.operands],
                                                       len(registers))
        return self.made[key]

    def _source(self, op: Any, register: int) -> int:
        """The register of a broadcast's operand that one of its result is a copy of."""
        if op not in self.sources:
            layout = self.k.layout(op.operands[0])
            self.sources[op] = {layout.at(register=r): r for r in reversed(range(layout.registers))}
        shape = self.k.layout(op.operands[0]).shape
        position = self.k.layout(op.results[0]).at(register=register)
        return self.sources[op][tuple(0 if s == 1 else c for s, c in
                                      zip(shape, position[len(position) - len(shape):], strict=True))]

    def load_ahead(self, value: Any, registers: list[int]) -> None:
        """Starts the loads of what these registers of `value` are computed from."""
        op = self.waiting.get(value)
        if op is None:
            return
        if op.name == "vector.transfer_read":
            self.get(value, registers)
            return
        if op.name == "vector.broadcast":
            registers = sorted({self._source(op, r) for r in registers})
        for v in op.operands:
            self.load_ahead(v, registers)

    def loads_behind(self, loop: Any) -> list[tuple[Any, list[int]]]:
        """Accesses (transfer_read, registers) behind `loop` that may start while it runs: of whole tiles (what rows or
        columns share comes from caches), for which registers suffice beside the loop's results."""
        k = self.k
        workgroups = max(1, k.chip.shared_bytes // max(1, k.shared.reserved))
        room = min(k.chip.vector_registers, CORE_REGISTERS // (k.threads * workgroups)) - OTHERS - sum(
            k.layout(r).registers for r in loop.results if is_vector(r))
        operations = [op.operation for op in loop.block.operations]
        shapes = [list(ir.VectorType(r.type).shape) for r in loop.results if is_vector(r)]
        found = []
        for op in operations[operations.index(loop) + 1:]:
            if op.name == "vector.transfer_read" and list(ir.VectorType(op.results[0].type).shape) in shapes \
                    and self._streams(op) and all(v in k.values for v in op.operands) and self._held_words(op) <= room:
                room -= self._held_words(op)
                found += [(op, group) for group in self._transfer(op).groups]
        return found

    def start(self, loads: list[tuple[Any, list[int]]]) -> None:
        """Emits some of what `loads_behind` gave."""
        for op, group in loads:
            self.early.setdefault(op, {}).update(self._access(op, group))

    def words(self, value: Any) -> int:
        """Registers of 4 bytes that the loads behind `value` fill."""
        op = self.waiting.get(value)
        if op is None:
            return 0
        if op.name != "vector.transfer_read":
            return sum(self.words(v) for v in op.operands)
        return self._held_words(op)

    def _held_words(self, op: Any) -> int:
        """Registers that hold all that a transfer_read gives."""
        return words(self.k.layout(op.results[0]), op.results[0])

    def _load(self, op: Any, registers: list[int]) -> Any:
        """The registers of a transfer_read: every access that holds one of them."""
        wanted = set(registers)
        found = dict(self.early.get(op, {}))
        for group in self._transfer(op).groups:
            if wanted.intersection(group) and group[0] not in found:
                found.update(self._access(op, group))
        return from_registers([found[r] for r in registers])

    def _transfer(self, op: Any) -> Transfer:
        if op not in self.transfers:
            self.transfers[op] = Transfer.of(self.k, op)
        return self.transfers[op]

    def _access(self, op: Any, group: list[int]) -> dict[int, Any]:
        """What one access of a transfer_read gives, by register."""
        transfer = self._transfer(op)
        padding = self.k.get(op.operands[1 + len(transfer.access.sizes)])
        piece = transfer.load(group, ir.VectorType(op.results[0].type).element_type, padding)
        return dict(zip(group, registers_of(piece), strict=True))

    def batches(self, value: Any, groups: list[list[int]]) -> Iterator[list[list[int]]]:
        """Groups of registers of `value` that are stored together, in batches of about PIECE registers.

        What a batch loads was asked for a few batches before, where LLVM does not move loads itself.
        """
        count = max(1, PIECE // len(groups[0]))
        out = [groups[i:i + count] for i in range(0, len(groups), count)]
        words = -(-self.words(value) // len(out))
        ahead = 0 if not words or self.k.chip.llvm_schedules else min(MOST_AHEAD, max(1, LOADED // words))
        for n, batch in enumerate(out):
            for later in out[n + ahead if n else 0:n + ahead + 1] if ahead else []:
                self.load_ahead(value, [r for group in later for r in group])
            yield batch


def _barrier_behind(op: Any) -> bool:
    """Whether others may write, behind a barrier of the block, what `op` reads."""
    behind = False
    for other in op.block.operations:
        if behind and other.operation.name == "gpu.barrier":
            return True
        behind = behind or other.operation == op
    return False

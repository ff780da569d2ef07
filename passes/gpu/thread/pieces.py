"""The code of epilogues in pieces (`epilogue-pieces`): operations wait for the stores that take their registers.

    %y = arith.mulf %acc, %s                       piece of %r, piece of %y, piece of %z, store of these registers
    %r = vector.transfer_read                  ->  piece of %r, piece of %y, piece of %z, store of the next ones
    %z = arith.addf %y, %r                         ...
    vector.transfer_write %z

What is live at once is the tile and one piece of everything that is computed from it, not a tile of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, ir
from xcc.diagnostics import UserError
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, registers_of, select_registers
from xcc.passes.gpu.layout.tile_ops import int_attribute
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.shared.values import is_elementwise, is_vector

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

PIECES = "xcc.pieces"           # on a transfer_write: registers that are computed and stored at once
AHEAD = "xcc.ahead"             # on a transfer_write: pieces ahead of which the loads of one are asked for
IN_PIECES = "xcc.in_pieces"     # on what is computed as stores ask for it
PREFETCH = "xcc.prefetch"       # on a transfer_read: last steps of the loop ahead of it that load it
READ, SPREAD = "vector.transfer_read", "vector.broadcast"


class Pieces:
    """The operations of one kernel that wait for the stores that use them."""

    def __init__(self, k: KernelBuilder) -> None:
        self.k = k
        self.waiting: dict[Value, Operation] = {}       # by result: operations not emitted yet
        self.made: dict[tuple[Value, tuple[int, ...]], Value] = {}
        self.transfers: dict[Operation, Transfer] = {}
        self.early: dict[Operation, dict[int, Value]] = {}      # by transfer_read: registers that are loaded already
        self.sources: dict[Any, dict[tuple[int, ...], int]] = {}    # registers by position of broadcasts' operands

    def defer(self, op: Operation) -> bool:
        """Keeps `op` back where it is computed in pieces, as its stores take it."""
        if PREFETCH in op.attributes and op not in self.early:
            raise UserError(f"{op.location}: {PREFETCH} cannot be obeyed: there is no pipelined loop ahead of the read")
        if IN_PIECES not in op.attributes:
            return False
        self._check(op)
        self.waiting[op.results[0]] = op
        return True

    def _check(self, op: Operation) -> None:
        """A UserError where `op` cannot be computed in pieces."""
        results = [r for r in op.results if is_vector(r)]
        known = op.name in (READ, SPREAD) or is_elementwise(op)
        layouts = {self.k.layout(v) for v in (*op.operands, *results) if is_vector(v)} if is_elementwise(op) else set()
        alike = len(layouts) < 2 and (not is_elementwise(op) or all(is_vector(v) for v in op.operands))
        if not known or len(results) != 1 or not alike or op.name == SPREAD and not is_vector(op.operands[0]) \
                or any(u.owner.operation.block != op.block for u in op.results[0].uses) \
                or op.name == READ and barrier_behind(op):
            raise UserError(f"{op.location}: {op.name} cannot be computed in pieces, as {IN_PIECES} says: reads, "
                            "broadcasts and elementwise operations can, with no barrier behind them")

    def stores(self, value: Value) -> bool:
        """Whether all that `value` is for are stores that take it piece by piece."""
        return not has_copies(self.k.layout(value)) and all(
            PIECES in user.attributes and number == 0 or IN_PIECES in user.attributes
            for user, number in ((u.owner.operation, u.operand_number) for u in value.uses))

    def get(self, value: Value, registers: list[int]) -> Value:
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

    def _source(self, op: Operation, register: int) -> int:
        """The register of a broadcast's operand that one of its result is a copy of."""
        if op not in self.sources:
            layout = self.k.layout(op.operands[0])
            self.sources[op] = {layout.at(register=r): r for r in reversed(range(layout.registers))}
        shape = self.k.layout(op.operands[0]).shape
        position = self.k.layout(op.results[0]).at(register=register)
        return self.sources[op][tuple(0 if s == 1 else c for s, c in
                                      zip(shape, position[len(position) - len(shape):], strict=True))]

    def load_ahead(self, value: Value, registers: list[int]) -> None:
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

    def loads_behind(self, loop: Operation) -> tuple[int, list[tuple[Operation, list[int]]]]:
        """In how many of its last steps `loop` loads what is read behind it: accesses (transfer_read, registers)."""
        operations = [op.operation for op in loop.block.operations]
        reads = [op for op in operations[operations.index(loop) + 1:] if PREFETCH in op.attributes]
        steps = {int_attribute(op, PREFETCH) for op in reads}
        for op in reads:
            if op.name != READ or IN_PIECES not in op.attributes or len(steps) > 1 or min(steps) < 1 \
                    or not all(v in self.k.values for v in op.operands):
                raise UserError(f"{op.location}: {PREFETCH} cannot be obeyed: reads in pieces have it, of what "
                                "is known ahead of the loop, all with one number of steps")
        return max(steps, default=0), [(op, group) for op in reads for group in self._transfer(op).groups]

    def start(self, loads: list[tuple[Operation, list[int]]]) -> None:
        """Emits some of what `loads_behind` gave."""
        for op, group in loads:
            self.early.setdefault(op, {}).update(self._access(op, group))

    def _load(self, op: Operation, registers: list[int]) -> Value:
        """The registers of a transfer_read: every access that holds one of them."""
        wanted = set(registers)
        found = dict(self.early.get(op, {}))
        for group in self._transfer(op).groups:
            if wanted.intersection(group) and group[0] not in found:
                found.update(self._access(op, group))
        return from_registers([found[r] for r in registers])

    def _transfer(self, op: Operation) -> Transfer:
        if op not in self.transfers:
            self.transfers[op] = Transfer.of(self.k, op)
        return self.transfers[op]

    def _access(self, op: Operation, group: list[int]) -> dict[int, Value]:
        """What one access of a transfer_read gives, by register."""
        transfer = self._transfer(op)
        padding = self.k.get(op.operands[1 + len(transfer.access.sizes)])
        piece = transfer.load(group, ir.VectorType(op.results[0].type).element_type, padding)
        return dict(zip(group, registers_of(piece), strict=True))

    def batches(self, store: Operation, value: Value, groups: list[list[int]]) -> Iterator[list[list[int]]]:
        """Groups of registers of `value` that `store` stores together, in batches of the registers of a piece.

        What a batch loads was asked for a few batches before.
        """
        registers, ahead = int_attribute(store, PIECES) or len(groups) * len(groups[0]), int_attribute(store, AHEAD)
        if registers < 0 or ahead < 0:
            raise UserError(f"{store.location}: {PIECES} and {AHEAD} are not below 0")
        count = max(1, registers // len(groups[0]))
        out = [groups[i:i + count] for i in range(0, len(groups), count)]
        for n, batch in enumerate(out):
            for later in out[n + ahead if n else 0:n + ahead + 1] if ahead else []:
                self.load_ahead(value, [r for group in later for r in group])
            yield batch


def has_copies(layout: Layout) -> bool:
    """Whether several threads hold an element: a store is then of one of them."""
    return bool(layout.copies("lane") or layout.copies("warp"))


def barrier_behind(op: Operation) -> bool:
    """Whether others may write, behind a barrier of the block, what `op` reads."""
    behind = False
    for other in op.block.operations:
        if behind and other.operation.name == "gpu.barrier":
            return True
        behind = behind or other.operation == op
    return False

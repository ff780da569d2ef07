"""Epilogues in pieces: what is pointwise between a large tile and its stores is computed a few registers at a time.

    %y = arith.mulf %acc, %s           %y = arith.mulf %acc, %s {xcc.in_pieces}
    %r = vector.transfer_read ...  ->  %r = vector.transfer_read ... {xcc.in_pieces}
    %z = arith.addf %y, %r             %z = arith.addf %y, %r {xcc.in_pieces}
    vector.transfer_write %z           vector.transfer_write %z {xcc.ahead = 2, xcc.pieces = 16}

A piece of %r, of %y and of %z, a store of these registers, then the next ones: what is live at once is the tile and one
piece of everything that is computed from it, not a tile of each. What a piece reads is asked for some pieces ``ahead``,
where LLVM does not move loads itself. Dropped, each operation is of whole tiles.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import CONVERT, set_int
from xcc.passes.gpu.memory.access import Access
from xcc.passes.gpu.thread.pieces import AHEAD, IN_PIECES, PIECES, barrier_behind, has_copies
from xcc.passes.shared.values import is_elementwise, is_vector

LOADED = 36     # registers that wait for loads of later pieces


@register_pass
class EpiloguePieces(Pass):
    """Computes what is pointwise between a product and its stores a few registers at a time."""

    registers: int = 16         # of each value that are in flight
    ahead: int = 4              # pieces whose loads are asked for before they are needed, at most

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            _Epilogues(k, self.registers, self.ahead).mark()


class _Epilogues:
    """The operations of a kernel that wait for the stores which use them."""

    def __init__(self, k: TileKernel, registers: int, ahead: int) -> None:
        self.k, self.registers, self.most_ahead = k, registers, ahead
        self.streamed: dict[Operation, bool] = {}
        self.computed: dict[Operation, bool] = {}

    def mark(self) -> None:
        for store in self.k.ops("vector.transfer_write"):
            value = store.operands[0]
            if self._small(value):
                continue
            set_int(store, PIECES, self.registers)
            for op in self._waiting(value):
                op.attributes[IN_PIECES] = ir.UnitAttr.get()
            ahead = self._ahead(store)
            if ahead:
                set_int(store, AHEAD, ahead)

    def _waiting(self, value: Value) -> list[Operation]:
        """The operations that `value` is computed by which may wait for its stores."""
        op = maker(value)
        if op is None or not self._streams(op):
            return []
        return [op, *(o for v in op.operands if is_vector(v) for o in self._waiting(v))]

    def _small(self, value: Value) -> bool:
        return self.k.layout(value).registers <= self.registers

    def _streams(self, op: Operation) -> bool:
        """Whether all that `op` is for are stores that take it piece by piece."""
        if op not in self.streamed:
            self.streamed[op] = self._can_stream(op)
        return self.streamed[op]

    def _can_stream(self, op: Operation) -> bool:
        if not (op.name == "vector.transfer_read" or self._spread(op) or is_elementwise(op)) \
                or len(op.results) != 1 or not is_vector(op.results[0]) or self._small(op.results[0]):
            return False
        if op.name == "vector.transfer_read" and barrier_behind(op):
            return False
        layout = self.k.layout(op.results[0])
        if is_elementwise(op) and any(not is_vector(v) or self.k.layout(v) != layout for v in op.operands):
            return False
        users = [(u.owner.operation, u.operand_number) for u in op.results[0].uses]
        return bool(users) and all(
            user.block == op.block and (user.name == "vector.transfer_write" and number == 0 and self._stored(op)
                                        or (is_elementwise(user) or self._spread(user)) and self._streams(user))
            for user, number in users)

    def _spread(self, op: Operation) -> bool:
        """Whether `op` is a broadcast of a vector whose registers are taken as they are asked for (not where
        LLVM loads all at once that does not depend on a product)."""
        return op.name == "vector.broadcast" and is_vector(op.operands[0]) and not self.k.chip.llvm_schedules

    def _stored(self, op: Operation) -> bool:
        return not has_copies(self.k.layout(op.results[0])) and self._computed(op)

    def _computed(self, op: Operation) -> bool:
        """Whether `op` is computed from a contraction's tile; what is not has nothing live, and loads at once."""
        if op not in self.computed:
            self.computed[op] = op.name in ("scf.for", "vector.contract") or (
                (op.name == CONVERT or is_elementwise(op))
                and any((origin := maker(v)) is not None and self._computed(origin) for v in op.operands))
        return self.computed[op]

    def _ahead(self, store: Operation) -> int:
        """Pieces ahead of which the loads of one are asked for."""
        value = store.operands[0]
        width = Access(store, self.k.chip.vector_bytes).run(self.k.layout(value))[0]
        accesses = self.k.layout(value).registers // width
        pieces = -(-accesses // max(1, self.registers // width))
        words = -(-self._loaded(value) // pieces)
        return 0 if not words or self.k.chip.llvm_schedules else min(self.most_ahead, max(1, LOADED // words))

    def _loaded(self, value: Value) -> int:
        """Registers of 4 bytes that the loads behind `value` fill."""
        op = maker(value)
        if op is None or IN_PIECES not in op.attributes:
            return 0
        return self.k.words(value) if op.name == "vector.transfer_read" else sum(map(self._loaded, op.operands))

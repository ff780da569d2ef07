"""prefetch-tiles: on CPUs the tile of a later instance is asked for while one is computed.

    scf.forall (%i) in (%n) { %t = vector.transfer_read %x[%i, %c0] ... }
    ->
    scf.forall (%i) in (%n) { %t = vector.transfer_read %x[%i, %c0] {xcc.fetched = array<i64: 2, 1>} ... }

of which `retile` makes prefetches of `%x[%i + 2, ...]` into the first cache, in the loops of a reduction of functions
(the sum of a softmax) of as many places, a line beside each piece. Those loops wait for arithmetic, while the loops
before wait for memory: so memory does not rest. Tiles that the first cache would not keep go to the second. Left out,
each instance waits for what it reads first; where all loops wait for memory, prefetches only add to what it does.
"""

from __future__ import annotations

from math import prod

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.fetches import FETCHED, dear_pass
from xcc.passes.tile.nests.keys import changes_slowly
from xcc.passes.walk import ops_where

BYTES = 8192        # ahead, at least
L1_PARTS = 2        # of the first cache: what is ahead takes less, beside the tile that is computed


@register_pass
class PrefetchTiles(Pass):
    """Has tiles of later instances asked for."""

    bytes: int = BYTES      # ahead, at least

    def run(self, module: Module, ctx: PassContext) -> None:
        first = (ctx.chip.shared_bytes if ctx.chip else 1 << 15) // L1_PARTS
        for func in module.body.operations:
            if func.operation.name != "func.func" or BLOCKS not in func.attributes \
                    or ops_where(func, lambda op: op.name == "vector.contract"):
                continue
            for read in ops_where(func, _moves_on):
                turns = max(1, -(-self.bytes // _bytes(read)))
                cache = 1 if turns * _bytes(read) < first else 2
                read.attributes[FETCHED] = ir.DenseI64ArrayAttr.get([turns, cache])


def _moves_on(op: Operation) -> bool:
    """Whether `op` reads a tile that loops of functions walk, another one in each instance."""
    if op.name != "vector.transfer_read" or op.parent.name != "scf.forall" or dear_pass(op) is None:
        return False
    rank = ir.MemRefType(op.operands[0].type).rank
    return not all(changes_slowly(v, op.parent.operation) for v in list(op.operands)[1:1 + rank])


def _bytes(read: Operation) -> int:
    kind = ir.VectorType(read.results[0].type)
    return prod(kind.shape) * max(1, int(kind.element_type.width) // 8)

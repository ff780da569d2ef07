"""share-operands: on CPUs, operands of products that several instances multiply are packed once for all of them.

    scf.forall (%i) in (%n) { scf.for %k { vector.contract %a, %b, %acc } } {xcc.parallel}
    ->
    scf.forall (%i) in (%n) { scf.for %k { vector.contract %a, %b, %acc {xcc.shared = array<i64: 0, 8>} } }
        {xcc.chunks = 8 : i64, xcc.parallel}

The instances go in so many chunks, and the right operand of the first seven turns has a place each in a chunk's memory,
the other turns one together. `retile` packs it there where it is not there yet (`passes/tile/nests/shared.py`). An
operand is shared whose place depends on the last dim of the forall by a quotient alone, or not at all: instances that
follow each other have it in common. Left out, each instance packs both operands.
"""

from __future__ import annotations

from math import prod

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.chunks import chunks_of
from xcc.passes.tile.nests.keys import changes_slowly, forall_around, key_of, loop_around
from xcc.passes.tile.nests.shared import CHUNKS, SHARED
from xcc.passes.walk import ops_where

L2_PARTS = 2            # of the L2 cache: what it does not hold is packed once still, and read in order
MOST_BYTES = 2 << 20    # a stack has room for
MOST_SLOTS = 64         # of an operand: a chunk marks each as empty before it begins


@register_pass
class ShareOperands(Pass):
    """Packs operands of products once for neighbouring instances."""

    bytes: int = 0      # of a chunk's slots; 0: as the chip's caches are

    def run(self, module: Module, ctx: PassContext) -> None:
        room = self.bytes or min(MOST_BYTES, L2_PARTS * ctx.chip.l2_bytes if ctx.chip else MOST_BYTES)
        for func in module.body.operations:
            if func.operation.name == "func.func" and BLOCKS in func.attributes:
                _share(func.operation, room, chunks_of(ctx.chip))


def _share(func: Operation, room: int, chunks: int) -> None:
    found: list[tuple[Operation, Operation, list[int]]] = []
    for product in ops_where(func, lambda op: op.name == "vector.contract"):
        forall = forall_around(product)
        numbers = [i for i in range(2) if forall is not None and _is_shared(product, i, forall)]
        if forall is not None and numbers:
            found.append((product, forall, numbers))
    bytes = sum(_bytes(product, i) for product, _, numbers in found for i in numbers)
    for product, forall, numbers in found:
        slots = [_slots(product, room // bytes) if i in numbers else 0 for i in range(2)]
        if any(slots):
            product.attributes[SHARED] = ir.DenseI64ArrayAttr.get(slots)
            forall.attributes[CHUNKS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), chunks)


def _is_shared(product: Operation, number: int, forall: Operation) -> bool:
    key = key_of(product.operands[number], forall)
    return bool(key) and all(changes_slowly(v, forall) for v in key or ())


def _bytes(product: Operation, number: int) -> int:
    element = ir.VectorType(product.operands[2].type).element_type
    return prod(ir.VectorType(product.operands[number].type).shape) * int(element.width) // 8


def _slots(product: Operation, most: int) -> int:
    """For the turns of the loop around the product, one without a loop; 0 where there is no room for several."""
    if loop_around(product) is None:
        return min(1, most)
    return min(most, MOST_SLOTS) if most > 1 else 0

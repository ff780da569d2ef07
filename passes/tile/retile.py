"""retile: on a CPU the block values of tile programs become loops over machine vectors.

    %t = vector.transfer_read %x[%i, %c0], %pad, %mask : vector<1x1024xf32>
    %e = math.exp %t : vector<1x1024xf32>
    %s = vector.multi_reduction <add>, %e, %zero [1] : vector<1x1024xf32> to vector<1xf32>
    ->
    %e = memref.alloca() : memref<1024xf32>
    scf.for %j = 0 to 1024 step 32 { vector.maskedload, math.exp : vector<32xf32>, vector.store %e[%j] }
    scf.for %j = 0 to 1024 step 32 iter_args(...) { vector.load %e[%j], arith.addf : vector<32xf32> }

Loads, arithmetic and what moves elements is computed where it is needed, inside the loops of reductions and stores;
what several of those need, or a loop again and again, is kept on the stack (`passes/tile/nests/choice.py`). Products
are loops over k around a block of sums in registers. A loop whose pieces have masks is two: whole pieces without a mask
as far as the masks allow, then what is left (`passes/tile/nests/loops.py`)."""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import MACHINE
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.chunks import chunks_of
from xcc.passes.tile.nests.program import retile


@register_pass
class Retile(Pass):
    """Cuts the blocks of tile programs into loops over vectors of the chip's width."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in list(module.body.operations):
            if func.operation.name == "func.func" and BLOCKS in func.operation.attributes:
                made = retile(func.operation, ctx.chip.vector_bytes if ctx.chip else 64, chunks_of(ctx.chip),
                              dot_products_of(ctx.chip), ctx.chip is not None and ctx.chip.tile_products)
                del made.attributes[BLOCKS]
                made.attributes[MACHINE] = ir.UnitAttr.get()
                func.operation.erase()

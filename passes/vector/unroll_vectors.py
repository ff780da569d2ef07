"""unroll-vectors: block-level n-D vectors become one-dimensional vectors of the machine's width.

    %a = arith.addf %x, %y : vector<2x40xf32>      with 16 lanes becomes 2 * (16 + 16 + 8) lanes:
    %a0 = arith.addf %x0, %y0 : vector<16xf32> ... %a5 = arith.addf %x5, %y5 : vector<8xf32>

Loops carry one value a machine vector. Nothing is left but scalars and 1-D vectors, which upstream's conversion
to the LLVM dialect takes as they are.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import MACHINE
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.passes.vector.unroll.unroller import Unroller


@register_pass
class UnrollVectors(Pass):
    """Cuts n-D vectors into 1-D vectors of `lanes` elements; 0 takes what a register of the chip holds of f32.

    dot: kinds of dot product instructions ("vnni", "bf16", ...) to use; empty takes the chip's.
    """

    lanes: int = 0
    dot: tuple[str, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> None:
        from xcc.passes.vector.unroll import (  # noqa: F401  (they register handlers)
            lane_instructions,
            unroll_contract,
            unroll_memory,
            unroll_shape,
        )

        dot = dot_products_of(ctx.chip, self.dot)
        lanes = self.lanes or (ctx.chip.vector_bytes // 4 if ctx.chip else 16)
        for f in list(module.body.operations):
            if f.operation.name == "func.func" and len(f.regions[0].blocks):
                if MACHINE in f.attributes:
                    Unroller(lanes, dot).instructions(f)
                else:
                    Unroller(lanes, dot).function(f)

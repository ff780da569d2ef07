"""A product's tile that is larger than the vector registers goes to the stack, its epilogue takes strips of rows of it.

    %y = linalg.generic (a product)  ->  %y = linalg.generic (a product) {xcc.strips = 8 : i64}

of which `tile` makes

    vector.transfer_write %sums, %buffer : vector<32x32xf32>   (on the stack)
    scf.for %i = 0 to 32 step 8 { (the rest of the kernel, for 8 rows of the tile) }

(passes/linalg/nests/strips.py). Left out, the epilogue is of whole tiles. Only where each dim of the product is one of
the result.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.nests.strips import product_in_strips
from xcc.passes.linalg.schedule.decisions import STRIPS, decide, scheduled


@register_pass
class EpilogueStrips(Pass):
    """Has epilogues of products walk strips, where the schedule wishes it."""

    rows: int = 0       # of a strip; 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            rows = self.rows or schedule.cpu.strips
            kernel = read(function) if rows else None
            product = contraction_of(kernel) if kernel is not None else None
            if kernel is not None and product is not None and product_in_strips(kernel) is not None:
                decide(product.operation, STRIPS, rows)

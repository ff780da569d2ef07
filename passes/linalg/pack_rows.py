"""Packing on the fly of a product's left operand (the A of BLIS): the rows of a chunk lie together while it lasts.

    %y = linalg.generic (a product)  ->  %y = linalg.generic (a product) {xcc.packed}

of which `tile` makes

    memref.alloca %rows : memref<64x1040xf32>                  (on the stack, lines of the cache apart)
    tiles of the first columns: copy what they read to %rows, a line of it for 16 steps of the multiplication
    tiles of the other columns: read %rows

(passes/linalg/evaluate/staged_rows.py). Left out, all tiles read the operand as it lies. It needs a left operand in f32
that is an argument and that nothing else reads, and chunks of rows; with ``xcc.depth`` a block of steps is packed.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.evaluate.staged_rows import packed_product
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.decisions import PACKED, decide, scheduled


@register_pass
class PackRows(Pass):
    """Packs rows of left operands, where the schedule wishes it."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if schedule.cpu.staged:
                decide(packed_product(read(function)).operation, PACKED, True)

"""Blocking of a product's sum (the KC of BLIS), so that a block of the left operand stays in a core's cache.

    %y = linalg.generic (a product of 4096 steps)
    ->
    %y = linalg.generic (a product of 4096 steps) {xcc.depth = 1024 : i64}

of which `tile` makes loops over blocks of 1024 steps around those over tiles; sums wait in the result's buffer between
blocks (passes/linalg/evaluate/depth_blocks.py). With ``xcc.parts`` the blocks are around all chunks. Left out, a sum is
made in one go. It needs one product with an f32 result of the kernel's own shape, whose steps the blocks divide.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.evaluate.depth_blocks import blocked_product
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.decisions import DEPTH, decide, scheduled


@register_pass
class BlockDepth(Pass):
    """Cuts long sums of products into blocks, where the schedule wishes it."""

    steps: int = 0      # of a block; 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            steps = self.steps or schedule.cpu.depth
            if steps:
                decide(blocked_product(read(function), steps)[0].operation, DEPTH, steps)

"""Long sums in f32 are added up in blocks, so that no accumulator takes so many numbers that their roundings show.

    %y = linalg.generic (a sum of 100000 rows)
    ->
    %y = linalg.generic (a sum of 100000 rows) {xcc.blocked = 512 : i64}

of which `tile` makes loops over blocks of 512 steps, and over blocks of those, around the loops along the sum
(passes/linalg/evaluate/blocked_sums.py): where an accumulator would take more than twice as many numbers, and where it
is not known how many. Left out, each lane adds up all that it takes one after the other: 100,000 numbers between 0 and
1 are 1e-5 off. It needs sums that start with zero, of which no strips are made.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.evaluate.blocked_sums import is_rounded_sum
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.passes.linalg.schedule.decisions import BLOCKED, decide, scheduled


@register_pass
class BlockedSums(Pass):
    """Has long f32 sums added up in blocks."""

    steps: int = 512        # of a block
    product: int = 1024     # the same of products, whose accumulators take all registers and wait in memory

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if schedule.cpu.strips:
                continue
            for op in read(function).ops:
                if op.is_reduction and op.operation is not None and is_rounded_sum(op):
                    decide(op.operation, BLOCKED, self.steps if product_operands(op) is None else self.product)

"""Steps of products' sums that read the same bytes, or a scale in common, are written out in groups.

    %y = linalg.generic (a product of x and 4-bit weights, a scale for each block of 32 steps)
    ->
    %y = linalg.generic (...) {xcc.unrolled = 16 : i64}

of which `tile` makes a loop over groups of 16 steps, in which a byte of two weights is read once and the scale is
multiplied once (passes/linalg/evaluate/unrolled_steps.py). Left out, each step reads, shifts and scales what it takes.
Products in panels that are decoded ahead (`decode-panels`) read no bytes.
"""

from __future__ import annotations

from math import prod

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.evaluate.unrolled_steps import alike_steps
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.decisions import UNROLLED, decide, scheduled
from xcc.passes.linalg.schedule.schedule import reduce_plan

LANE = 4        # bytes of an accumulator's element


@register_pass
class UnrollSteps(Pass):
    """Has steps of a product that share what they read written out together."""

    steps: int = 16     # of a group
    most: int = 512     # multiplications of vectors in a group

    def run(self, module: Module, ctx: PassContext) -> None:
        bytes_ = ctx.chip.vector_bytes if ctx.chip is not None else 16
        for function, schedule in scheduled(module):
            kernel = read(function)
            product = contraction_of(kernel)
            if product is None or product.operation is None or schedule.cpu.along:
                continue
            vectors = max(1, prod(schedule.vector) * LANE // bytes_)
            lanes = reduce_plan(kernel, schedule)[product]
            decide(product.operation, UNROLLED, _group(product, lanes, min(self.steps, self.most // vectors)))


def _group(product: Op, lanes: dict[int, int], most: int) -> int:
    """So many steps, a power of two, that groups and what is alike divide each other; 0 where nothing is alike.

    lanes: how many steps of each loop are one, as of a dot product instruction.
    """
    loops = [p for p, n in lanes.items() if product.loops[p] != 1 and n <= 1]
    if not loops:
        return 0
    size, steps = product.loops[loops[-1]], 1
    most = min(most, size) if isinstance(size, int) else most
    alike = set().union(*(alike_steps(t, access, f"i{loops[-1]}") for t, access in product.inputs)) - {1}
    while alike and 2 * steps <= most and all(n % (2 * steps) == 0 or 2 * steps % n == 0 for n in alike):
        steps *= 2
    return steps if steps > 1 else 0

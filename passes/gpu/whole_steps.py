"""Whole steps of pipelined loops have a loop of their own, in which nothing is masked along it.

    scf.for %k ... { ... vector.create_mask %m, (%n - %k) ... } {xcc.stages = 4}
    ->
    scf.for %k ... { ... } {xcc.stages = 4, xcc.whole}

Where only the run knows how many steps there are, it does not know either whether the last one is whole, and each
step asks of each of its copies whether there is what it reads: of f16 products on an H100 that takes a tenth of the
time. All steps but the last ones are whole: they come first, without that, then those of which something may be
missing. Dropped, all steps ask.
"""

from __future__ import annotations

from typing import ClassVar

from xcc._mlir import Module, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.whole_steps import WHOLE, WholeSteps


@register_pass
class WholeStepsApart(Pass):
    """Lets the whole steps of loops whose number of steps the run knows have a loop of their own."""

    name: ClassVar[str] = "whole-steps"

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in k.ops("scf.for"):
                plan = LoadsAhead.of(k, loop)
                if plan is not None and not plan.held and Steps.of(loop).count is None and WholeSteps.of(loop):
                    loop.attributes[WHOLE] = ir.UnitAttr.get()

"""Software pipelining: which loads run ahead of the steps that need them, in how many stages, and how.

    scf.for ... { vector.contract {xcc.staged = [{memory = "..."}, {}]} ... }
    ->
    scf.for ... { vector.contract {xcc.staged = [{load = "async", memory = "..."}, {}]} ... } {xcc.stages = 4}

A tile that is read by one transfer or gather in pieces of 4 to 16 bytes is copied asynchronously (``cp.async``), as
many steps ahead as there are stages behind the first. Any other (elements apart, odd alignment, arithmetic before the
contraction, chips without such copies) is loaded into ``registers`` one step ahead (double buffering). What is the same
in all steps comes there ``once``, with the copies of the first step where it has their form. Dropped, each step loads
what it needs itself.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.staged_tile import ASYNC, ONCE, REGISTERS
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, set_int
from xcc.passes.gpu.pipeline.loads_ahead import STAGES, staged_tiles, write_staged
from xcc.passes.gpu.pipeline.staging_rules import may_be_async


@register_pass
class PipelineLoads(Pass):
    """Gives loops stages, and says how the operands that they keep in shared memory are loaded."""

    stages: int = 0             # of each loop; 0: as many as the kernel's schedule says
    asynchronous: bool = True   # copies, where the chip has them and the loads their form

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            stages = self.stages or config_int(k.func, "stages", 0)
            for loop in k.ops("scf.for") if stages > 1 else []:
                staged = staged_tiles(k, loop)
                for _, t in staged:
                    copied = self.asynchronous and t.slice and may_be_async(k, t.value, t.memory, t.stored)
                    t.load = ASYNC if copied else REGISTERS if t.slice else ONCE
                if staged:
                    write_staged(loop, staged)
                    set_int(loop, STAGES, stages)

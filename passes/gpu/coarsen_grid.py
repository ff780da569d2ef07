"""Several iterations of a grid in one workgroup, a warp each (thread coarsening).

    scf.forall (%i) in (%n) { ... }  ->  scf.forall (%i) in (%n) { ... } {xcc.instances = 4}

A GPU begins workgroups one after the other (an H100 about 0.8 a nanosecond): 4096 rows of 256 elements, a workgroup a
row, take as long as that takes, 6 us. Where a warp computes an iteration by itself, neighbouring ones share a
workgroup: each warp has its own, and its own part of shared memory; what waited for the workgroup waits for the warp.
Not where an iteration has products or memory that a workgroup keeps. Dropped, each has a workgroup.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, set_int
from xcc.passes.gpu.thread.grid import INSTANCES, instances_problem


@register_pass
class CoarsenGrid(Pass):
    """Says how many iterations of a grid a workgroup computes, a warp each."""

    instances: int = 0          # of a workgroup; 0: as many as the kernel's schedule says, one where it says none

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            instances = self.instances or config_int(k.func, "instances", 1)
            for forall in k.ops("scf.forall") if instances > 1 else []:
                if not instances_problem(k, forall, instances):
                    set_int(forall, INSTANCES, instances)

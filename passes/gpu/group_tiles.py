"""In which order workgroups take tiles: grouped (GROUP_SIZE_M of Triton's tutorial, threadblock swizzle of CUTLASS).

    scf.forall (%i, %j) ... { ... }  ->  scf.forall (%i, %j) ... { ... } {xcc.group = 8}

Workgroups walk eight tiles along ``%i``, then go one on along ``%j``, so that those which run together share tiles of
both operands in the L2 cache. Dropped, they take them row by row.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.index_values import forall_bounds
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, set_int
from xcc.passes.gpu.pipeline.rounds import GROUP


@register_pass
class GroupTiles(Pass):
    """Says of grids of two dims and more how many rows of tiles neighbouring workgroups take together."""

    rows: int = 0               # 0: as many as the kernel's schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            rows = self.rows or config_int(k.func, "group", 0)
            for forall in k.ops("scf.forall") if rows > 1 else []:
                if len(forall_bounds(forall)[2]) > 1:
                    set_int(forall, GROUP, rows)

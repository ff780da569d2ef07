"""Persistent kernels: fewer workgroups than tiles, each of which computes one tile after the other.

    scf.forall (%i, %j) ... { ... }  ->  scf.forall (%i, %j) ... { ... } {xcc.persistent = 132}

While a workgroup computes the epilogue of a tile, the first steps of its next one are copied to shared memory, and no
workgroup is started for it. Only where the tile has one loop, pipelined, all of whose loads are asynchronous copies and
whose products run on (``xcc.in_flight``), and what the epilogue exchanges between threads has room beside the slots.
The run alone may know the number of steps, which may differ from tile to tile, where the loop carries sums of products
and nothing else: of fewer steps than are copied ahead, what is missing are zeros. Dropped, each tile is a workgroup.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, set_int
from xcc.passes.gpu.pipeline.rounds import PERSISTENT, rounds_problem
from xcc.targets.base import Chip


@register_pass
class PersistentGrid(Pass):
    """Makes kernels persistent, where their loops allow it."""

    workgroups: int = 0         # 0: as many as the kernel's schedule says, none where it says none

    def acts_on(self, chip: Chip | None) -> bool:
        return chip is not None and bool(chip.warpgroup_products)

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            workgroups = self.workgroups or config_int(k.func, "persistent", 0)
            for forall in k.ops("scf.forall") if workgroups else []:
                if not rounds_problem(k, forall):
                    set_int(forall, PERSISTENT, workgroups)

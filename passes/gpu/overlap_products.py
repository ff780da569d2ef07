"""Products of warpgroups that run on while the next step of their loop begins.

    scf.for ... {                                     scf.for ... {
      %r = vector.contract {xcc.staged = ...} ...  ->   %r = vector.contract {xcc.staged = ...} ...
      scf.yield %r                                      scf.yield %r
    } {xcc.stages = 4}                                } {xcc.in_flight = 1, xcc.stages = 4}

Where all that a loop's products do is to add to what it carries, a step waits for the products of the step before
(``wgmma.wait_group 1``), not for its own, and what they read stays a step longer. Behind the loop they are waited for
where their results are used. Where a second product multiplies what was computed of a first one (attention), two
warpgroups take turns: the products of one run while the other, up to half a step ahead or behind, computes (ping-pong
scheduling; `passes/gpu/pipeline/alternating_loop.py`). Dropped, each product is waited for as it is issued, and all
threads begin a step together.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import int_attribute, set_int
from xcc.passes.gpu.pipeline.loads_ahead import IN_FLIGHT, STAGES, staged_tiles
from xcc.passes.gpu.pipeline.staging_rules import add_on, take_turns
from xcc.targets.base import Chip

TURNS = 3       # stages of a loop in which warpgroups take turns, at least


@register_pass
class OverlapProducts(Pass):
    """Lets the products of warpgroups in pipelined loops run on into the next step."""

    def acts_on(self, chip: Chip | None) -> bool:
        return chip is not None and bool(chip.warpgroup_products)

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in k.ops("scf.for"):
                tiles = [t for _, t in staged_tiles(k, loop)] if STAGES in loop.attributes else []
                if tiles and add_on(k, loop, tiles):
                    set_int(loop, IN_FLIGHT, 1)
                elif tiles and take_turns(k, loop, tiles):
                    set_int(loop, IN_FLIGHT, 1)
                    set_int(loop, STAGES, max(int_attribute(loop, STAGES), TURNS))

"""Prefetch of what lies as the result does: at each stored tile the elements some way further on are asked for.

    func.func @k(...) attributes {xcc.config = {cpu = {ahead = 96 : i64, ...}, ...}}
    ->
    func.func @k(...) attributes {xcc.config = ..., xcc.ahead = 96 : i64}

of which `tile` makes ``memref.prefetch %x[%i, %j + 96]`` beside the store of the tile at ``[%i, %j]``, for each
argument that is read at the result's coordinates. Left out, the processor finds out by itself.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import AHEAD, decide, scheduled


@register_pass
class PrefetchInputs(Pass):
    """Has arguments prefetched, where the schedule wishes it."""

    elements: int = 0   # ahead; 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            decide(function, AHEAD, self.elements or schedule.cpu.ahead)

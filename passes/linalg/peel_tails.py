"""Peeling: full tiles get loops without masks, what is left behind the last of them code of its own.

    func.func @k(...) attributes {xcc.config = {tail = "peel", ...}}
    ->
    func.func @k(...) attributes {xcc.config = {tail = "peel", ...}, xcc.peeled}

of which `tile` makes

    scf.for %i = 0 to 96 step 32 { (vectors of 32) }           scf.for %i = 0 to 100 step 32 {
    (a vector of 32 with 4 lanes on)                             (vectors of 32 with min(32, 100 - %i) lanes on) }

on the left; left out, every tile is masked (predication), as on the right.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import PEELED, decide, scheduled


@register_pass
class PeelTails(Pass):
    """Has the last tiles peeled, where the schedule wishes it."""

    always: bool = False        # also where the schedule wishes for masks

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            decide(function, PEELED, self.always or schedule.tail == "peel")

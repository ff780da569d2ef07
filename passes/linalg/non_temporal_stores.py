"""Results that are not read soon are written past the caches (non-temporal stores).

    func.func @k(...) attributes {xcc.config = {cpu = {stream = true, ...}, ...}}
    ->
    func.func @k(...) attributes {xcc.config = ..., xcc.stream}

of which `tile` makes ``vector.transfer_write ... {xcc.stream}`` for the largest result; `unroll-vectors` makes machine
vectors of it, non-temporal where the buffer's address allows. What is parked waits on the stack then. Left out, stores
go through the caches.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import STREAM, decide, scheduled


@register_pass
class NonTemporalStores(Pass):
    """Has results written past the caches, where the schedule wishes it."""

    always: bool = False        # also where the schedule does not wish it

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            decide(function, STREAM, self.always or schedule.cpu.stream)

"""A dear value that a reduction over a row needs, and then the result, waits in memory between the two (a spill).

    %e = linalg.generic (exponentials of a row)  ->  %e = linalg.generic (...) {xcc.parked}

of which `tile` makes

    for each tile of a row: e = exp(x - maximum), sum += e; store e to the result's row
    for each tile of a row: load e; store e / sum

(passes/linalg/evaluate/parking.py). Left out, the second loop computes it again. It needs rows that are whole in a
chunk.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.decisions import PARKED, decide, op_number, scheduled


@register_pass
class ParkValues(Pass):
    """Has dear values parked, where the schedule wishes it."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if schedule.cpu.park >= 0:
                decide(op_number(read(function), schedule.cpu.park).operation, PARKED, True)

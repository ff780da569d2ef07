"""The rows of a large matrix are dealt out to threads, so that those that run together read the same columns.

    func.func @k(...) attributes {xcc.config = {cpu = {parts = 2 : i64, ...}, ...}}
    ->
    func.func @k(...) attributes {xcc.config = ..., xcc.parts = 2 : i64}

of which `tile` makes a loop over parts of the rows, in which each part walks the same chunks of columns
(passes/linalg/nests/dealt_rows.py):

    scf.forall (%part, %left, %number) = (0, 0, 0) to (2, columns, chunks of a part) step (1, width, 1)

Left out, the loop is over chunks of rows and of columns, in the schedule's order.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import PARTS, decide, scheduled


@register_pass
class DealRows(Pass):
    """Deals the rows of a matrix out to parts, where the schedule wishes it."""

    parts: int = 0      # 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            decide(function, PARTS, self.parts or schedule.cpu.parts)

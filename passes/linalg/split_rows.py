"""Few long rows are reduced in parts, for all cores (split reductions; of online sums: flash decoding).

    func.func @k(...) attributes {xcc.config = {gpu = {splits = 16 : i64, ...}, online = true, ...}}
    ->
    func.func @k(...) attributes {xcc.config = ..., xcc.splits = 16 : i64}

of which `tile` makes

    scf.forall (%part, %row) in (16, 8) {                      scf.forall (%row) in (8) {
      (maximum and sums of a 16th of the row,                    (maximum and sums of the row, the results)
       to workspaces) }                                        }
    scf.forall (%row) in (8) {
      (those of all parts merged, the results) }

on the left (passes/linalg/evaluate/online_parts.py; a loop for each level of reductions where they are not online,
passes/linalg/evaluate/row_parts.py); left out, a row is one workgroup's, as on the right. The workspaces are arguments
behind the outputs (``xcc.scratch``).
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import SPLITS, decide, scheduled


@register_pass
class SplitRows(Pass):
    """Has rows reduced in parts, where the schedule wishes it."""

    parts: int = 0      # at most; 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            decide(function, SPLITS, self.parts or schedule.gpu.splits)

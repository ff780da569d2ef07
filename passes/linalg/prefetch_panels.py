"""Prefetch of a product's operands: rows ahead of the one that is read, and shares of the next panel of packed weights.

    %y = linalg.generic (a product)  ->  %y = linalg.generic (a product) {xcc.prefetch = 64 : i64, xcc.shares = 4 : i64}

of which `tile` makes, at each step of the product's loop, ``memref.prefetch`` of the row that is ``xcc.prefetch`` steps
further on, and of a part of the next panel, which ``xcc.shares`` tiles of rows (a power of two) ask for together
(passes/linalg/evaluate/fetch_ahead.py). Left out, nothing is asked for. Only what lies
in panels, or in rows of a step each, is prefetched.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.evaluate.fetch_ahead import packed_input
from xcc.passes.linalg.kernel.kernel import is_packed, rows_of_steps
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.passes.linalg.schedule.decisions import COLUMNS, PREFETCH, SHARES, decide, scheduled


@register_pass
class PrefetchPanels(Pass):
    """Has operands of products prefetched, where the schedule wishes it."""

    rows: int = 0       # ahead; 0: as many as the schedule says
    shares: int = 0     # of the next panel; 0: as many as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            rows, shares = self.rows or schedule.cpu.prefetch, self.shares or schedule.cpu.shares
            for op in read(function).ops if rows or shares else ():
                if not op.is_reduction:
                    continue
                if product_operands(op) is not None and any(
                        t.arg >= 0 and (is_packed(a) or rows_of_steps(op, a)) for t, a in op.inputs):
                    decide(op.operation, PREFETCH, rows)
                if packed_input(op) is not None or COLUMNS in op.operation.attributes:
                    decide(op.operation, SHARES, shares)

"""Packing on the fly of a product's right operand (the B of BLIS): a panel of columns lies together while it lasts.

    %y = linalg.generic (a product)  ->  %y = linalg.generic (a product) {xcc.columns}

of which `tile` makes

    memref.alloca %panel : memref<1024x32xf32>         (on the stack)
    for each panel of columns, where a chunk has several tiles of rows, or columns are to be turned:
      %panel = the operand's columns
      tiles of rows: read %panel

(passes/linalg/nests/packed_columns.py). Left out, all tiles read the operand as it lies. It needs a right operand that
is an argument and that nothing else reads; with ``xcc.depth`` a block of steps is packed.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.kernel.right_columns import columns_packed
from xcc.passes.linalg.schedule.decisions import COLUMNS, decide, scheduled


@register_pass
class PackColumns(Pass):
    """Packs columns of right operands, where the schedule wishes it."""

    always: bool = False        # also where the schedule does not wish it

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if self.always or schedule.cpu.columns:
                decide(columns_packed(read(function)).op.operation, COLUMNS, True)

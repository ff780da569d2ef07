"""Panels of narrow weights are decoded (dequantised) once for all tiles of rows of a chunk.

    %y = linalg.generic (a product of x and decoded weights)  ->  %y = linalg.generic (...) {xcc.decoded}

of which `tile` makes

    memref.alloca %panel : memref<1x2048x32xf32>               (on the stack)
    for each panel of columns, where a chunk has several tiles of rows:
      %panel = the decoded weights of the panel
      tiles of rows: read %panel

(passes/linalg/nests/decoded_panels.py). Left out, each tile decodes what it multiplies.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.nests.decoded_panels import decoded_operand
from xcc.passes.linalg.schedule.decisions import DECODED, decide, scheduled


@register_pass
class DecodePanels(Pass):
    """Has panels decoded into memory, where the schedule wishes it and a product decodes its right operand."""

    always: bool = False        # also where the schedule does not wish it

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if not (self.always or schedule.cpu.decoded):
                continue
            kernel = read(function)
            product = contraction_of(kernel)
            if product is not None and decoded_operand(kernel) is not None:
                decide(product.operation, DECODED, True)

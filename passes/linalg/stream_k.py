"""Stream-K: the last tiles of a product, which would leave cores idle, are cut along their sums.

    func.func @k(...) attributes {xcc.config = {gpu = {streamed = array<i64: 3, 4>, ...}, ...}}
    ->
    func.func @k(...) attributes {xcc.config = ..., xcc.streamed = array<i64: 3, 4>}

of which `tile` makes, of nine tiles of eight steps each (passes/linalg/nests/streamed.py),

    scf.forall (%w) in (10) {                                  scf.forall (%i, %j) in 3 x 3 tiles {
      scf.if %w < 6 { the tile number %w }                       (the sum of a tile, its epilogue) }
      else { six of the 24 steps of the last three tiles,
             their sums to %workspace } }
    scf.forall (%p) in (12) {
      (sums of 16 rows of a tile added up, their epilogue) }

on the left; left out, each tile is a workgroup's, as on the right. The workspace is an argument behind the outputs
(``xcc.scratch``). It needs one product of two tile dims of known size, and a workgroup a tile; loops of a
convolution's are walked as one.
"""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.diagnostics import UserError
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.decisions import STREAMED, scheduled


@register_pass
class StreamK(Pass):
    """Cuts the last tiles of products along their sums, where the schedule wishes it."""

    tiles: tuple[int, ...] = ()     # how many, and for how many workgroups; empty: as the schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        if len(self.tiles) not in (0, 2):
            raise UserError(f"pass '{self}': tiles are two numbers, of tiles and of workgroups")
        for function, schedule in scheduled(module):
            streamed = self.tiles or schedule.gpu.streamed
            if streamed:
                function.attributes[STREAMED] = ir.DenseI64ArrayAttr.get(list(streamed))

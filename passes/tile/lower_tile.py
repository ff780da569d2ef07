"""lower-tile: tile programs of the tile dialect to those of block-level vectors, which targets take.

    func.func @scale(%x: memref<?x?xf32> {tile.name = "x"}, %a: f32) attributes {tile.grid = ["x_0"]} {
      %i = "tile.program_id"() {axis = 0} : () -> index
      %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 64]} : ... -> vector<1x64xf32>
    ->
    func.func @scale(%x: memref<?x?xf32>, %d0: index, %d1: index, %d2: index)
        attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "d1"]], tile.symbols = [...]} {
      scf.forall (%i) in (%d0) {
        %t = vector.transfer_read %x[%i, %c0], %zero, %mask : memref<?x?xf32>, vector<64xf32>

What a program does not say is inferred: sizes, strides and scalars become symbols (`xcc.dialects.tile.program`).
Buffers of any strides are read and written by positions. Asserts are left out; what no target has a rule for is a
UserError. """

from __future__ import annotations

from xcc._mlir import Module
from xcc.dialects import tile as tile_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.tile.lowering.function import lower_function


@register_pass
class LowerTile(Pass):
    """Makes block-level vectors on memrefs, inside a scf.forall, of the programs of the tile dialect."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in tile_d.programs_in(module):
            lower_function(func)
            func.operation.erase()

"""linalg kernels to tile programs, as their ``xcc.config`` says.

Before::

    func.func private @k(%x: tensor<?x768xf32>, %d0: index) -> tensor<?x768xf32>
        attributes {xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 1, 32>, ...}}
      linalg.generic ... (ops of the kernel)

After::

    func.func private @k(%x: memref<?xf32>, %out: memref<?xf32>, %d0: index)
      scf.forall (%i) = (0) to (%n) step (8)
        scf.for ... vector.transfer_read ... arith on vectors ... vector.transfer_write

Buffers that one nest fills and a later one reads (`splits`) are arguments between the outputs and the symbols; their
dims are ``xt.scratch_dims``, their bytes ``xcc.scratch``.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, func_d, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.nests.tile_program import TileProgram
from xcc.passes.linalg.schedule.schedule import Schedule


@register_pass
class Tile(Pass):
    """Turns every configured linalg kernel into a tile program."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function in list(module.body.operations):
            if function.operation.name == "func.func" and "xcc.config" in function.attributes \
                    and "xcc.tiles" not in function.attributes:
                tile_kernel(function, module)


def tile_kernel(function: Operation, module: Module) -> None:
    """Replaces one kernel function by its tile program."""
    kernel = read(function)
    program = TileProgram(kernel, Schedule.from_attr(function.attributes["xcc.config"]))
    with ir.InsertionPoint(function), function.location:
        new = program.declare(kernel.name + "__tiled", function.attributes)
    entry = new.opview.add_entry_block()
    with ir.InsertionPoint(entry), function.location:
        program.emit(entry, module)
        func_d.ReturnOp([])
    function.operation.erase()
    new.attributes["sym_name"] = ir.StringAttr.get(kernel.name)

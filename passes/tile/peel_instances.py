"""peel-instances: on CPUs instances whose tiles lie inside their buffers as a whole have code of their own.

    scf.forall (%i) in (%n) {...} {xcc.parallel}  ->  scf.forall (%i) in (%n) {...} {xcc.parallel, xcc.peeled}

of which `retile` makes

    scf.if %whole { straight code, without masks, values in registers } else { loops, with masks }

It is for programs without loops whose tiles half of the registers hold: short rows. Left out, each loop is cut in two.
"""

from __future__ import annotations

from math import prod

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import is_vector
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.instances import PEELED, masks_of_transfers
from xcc.passes.tile.nests.loops import FEW
from xcc.passes.tile.nests.program import VECTORS
from xcc.passes.walk import ops_where

MOST_OPERATIONS = 128       # of a program that has its code twice


@register_pass
class PeelInstances(Pass):
    """Has code without masks made for whole instances."""

    def run(self, module: Module, ctx: PassContext) -> None:
        registers, vector_bytes = (ctx.chip.vector_registers, ctx.chip.vector_bytes) if ctx.chip else (32, 64)
        most = min(FEW, registers // 2 // VECTORS) * VECTORS * vector_bytes // 4
        for func in module.body.operations:
            if func.operation.name == "func.func" and BLOCKS in func.attributes:
                for forall in ops_where(func, lambda op: op.name == "scf.forall"):
                    if _is_short(forall, most):
                        forall.attributes[PEELED] = ir.UnitAttr.get()


def _is_short(forall: Operation, most: int) -> bool:
    """Whether tiles have so many elements or fewer, and are reduced: else loops do as well."""
    inside = ops_where(forall, lambda op: op != forall)
    names = {op.name for op in inside}
    if len(inside) > MOST_OPERATIONS or names & {"scf.for", "scf.if", "scf.while"} \
            or "vector.multi_reduction" not in names or not masks_of_transfers(forall):
        return False
    return all(prod(ir.VectorType(v.type).shape) <= most for op in inside for v in op.results if is_vector(v))

"""Masked loads of neighbours as gathers, which get a layout as any access: on GPUs each lane has an address.

    %v = vector.maskedload %m[%i], %mask, %rest      %n = vector.step
                                                ->   %v = vector.gather %m[%i] [%n], %mask, %rest

Canonicalisation makes such loads of gathers whose places are those of the lanes: the first piece of a concatenation.
"""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import op as built
from xcc.passes.walk import ops_where


@register_pass
class MaskedGathers(Pass):
    """Makes masked loads gathers."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in ops_where(module, lambda o: o.name == "vector.maskedload"):
            memory, *places, mask, rest = op.operands
            with ir.InsertionPoint(op), op.location:
                kind = ir.VectorType.get(ir.VectorType(mask.type).shape, ir.IndexType.get())
                gathered = built("vector.gather", [op.results[0].type],
                                 [memory, *places, built("vector.step", [kind], []), mask, rest])
            op.results[0].replace_all_uses_with(gathered)
            op.operation.erase()

"""Products of 16-bit floats on CPUs that multiply f32 only: what they broadcast is widened once, ahead.

    %y = xt.dot_general(%x, %w)            %y = xt.dot_general(xt.convert(%x), %w)
    : f16, f16 -> f16                  ->  : f32, f16 -> f16

The elements of the first operand are broadcast one by one, and a conversion takes as long for one as for a vector. The
second one's are widened in registers, a vector at a time: weights are read in 16 bits.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import at, products
from xcc.passes.xt.products.panels import multiplies

NARROW = ("f16", "bf16")


@register_pass
class WidenProducts(Pass):
    """Widens the first operand of products of a 16-bit float that the chip does not multiply."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in products(module):
            kind = xt.TensorType.of(op.operands[0]).dtype
            if kind in NARROW and not (ctx.chip is not None and multiplies(ctx.chip, kind)):
                with at(op):
                    op.operands[0] = xt.convert(op.operands[0], dtype="f32")

"""Products of 8-bit floats on GPUs whose matrix instructions do not take them: as f16, which holds all their values.

    %y = xt.dot_general(%a, %b)            %y = xt.dot_general(xt.convert(%a), xt.convert(%b))
    : f8E4M3FN, f8E4M3FN -> f32        ->  : f16, f16 -> f32

Sums are of exact products in f32 either way. The conversions are fused with the product's loads.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.passes.xt.graph.rewrite import PRODUCTS, rebuilt, rewrite

SMALL = ("f8E4M3FN", "f8E5M2")


@register_pass
class MultipliedTypes(Pass):
    """Multiplies 8-bit floats as f16 where the chip has matrix instructions for that type only."""

    def run(self, module: Module, ctx: PassContext) -> None:
        taken = {i.types[0] for i in instructions_of(ctx.chip) if i.exact}
        if "f16" not in taken:
            return

        def widened(op: Operation) -> Value | None:
            kinds = {xt.TensorType.of(v).dtype for v in op.operands}
            if not kinds <= set(SMALL) or len(kinds) == 1 and kinds <= taken:
                return None
            return rebuilt(op, [xt.convert(v, dtype="f16") for v in op.operands])

        rewrite(module, dict.fromkeys(PRODUCTS, widened))

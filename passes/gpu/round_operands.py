"""f32 operands of products by tf32 units, rounded to nearest.

    vector.contract {xcc.lossy} %a, %b, %c : vector<64x32xf32>, ...
    ->
    %r = %a with half of the last kept bit added to its bits, but infinities and NaNs as they are
    vector.contract {xcc.lossy} %r, ... : vector<64x32xf32>, ...

The units read 10 bits of the mantissa and ignore the rest, which makes each product 7e-4 smaller on average: over the
50 layers of a ResNet that adds up to 2% of the result. Rounded so (ties away from zero, as PTX's ``cvt.rna.tf32`` does)
errors are as large but have either sign. Only where an instruction of the chip ignores bits.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, arith_d, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.shared.lossy import LOSSY

HALF = 1 << 12              # of the last of tf32's bits
EXPONENT = 0x7F800000       # all of its bits are set in infinities and NaNs


@register_pass
class RoundOperands(Pass):
    """Rounds the f32 operands of products whose instruction ignores some of their bits."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for op in k.ops("vector.contract"):
                instruction = k.product(op).instruction if LOSSY in op.attributes else None
                if instruction is not None and not instruction.exact:
                    with op.location, ir.InsertionPoint(op):
                        _round(op)


def _round(op: Operation) -> None:
    """Rounds the first two operands of `op`."""
    for n in (0, 1):
        op.operands[n] = _nearest(op.operands[n])


def _nearest(value: Value) -> Value:
    shape = ir.VectorType(value.type).shape
    kind = ir.VectorType.get(shape, ir.IntegerType.get_signless(32))

    def number(n: int) -> Value:
        element = ir.IntegerAttr.get(kind.element_type, n)
        return arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, element))

    bits = arith_d.bitcast(kind, value)
    finite = arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(bits, number(EXPONENT)), number(EXPONENT))
    return arith_d.bitcast(value.type, arith_d.select(finite, arith_d.addi(bits, number(HALF)), bits))

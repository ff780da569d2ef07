"""Requantisation: f32 numbers that are finite to narrow integers."""

from __future__ import annotations

from typing import Any

from xcc._mlir import arith_d, ir, math_d
from xcc.passes.xt_to_linalg.builder import Builder
from xcc.passes.xt_to_linalg.registry import Op, converts
from xcc.passes.xt_to_linalg.types import constant, limits, stored
from xcc.passes.xt_to_linalg.view import View

__all__: list[str] = []

_F = arith_d.CmpFPredicate


@converts("requantize")
def convert_requantize(b: Builder, op: Op) -> View:
    """Clamped before it is rounded and shifted: the bounds are integers. Comparison and selection are one instruction
    on machines, where `maximumf` with its NaN is several."""
    zero = op.attr("zero_point", 0)
    low, high = (int(v) - zero for v in limits(op.dtype))
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

    def body(s: list[Any]) -> Any:
        bottom, top = constant(f32, low), constant(f32, high)
        x = arith_d.select(arith_d.cmpf(_F.OGT, s[0], bottom), s[0], bottom)
        x = arith_d.select(arith_d.cmpf(_F.OLT, x, top), x, top)
        whole = arith_d.fptosi(i32, math_d.roundeven(x))
        shifted = arith_d.addi(whole, constant(i32, zero)) if zero else whole
        return arith_d.trunci(stored(op.dtype), shifted)

    return b.pointwise(op.dims, op.dtype, op.operands, body)

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
MAGIC = 12582912        # 1.5 * 2^23: added to a small f32, it leaves the nearest integer in the low bits
MAGIC_BITS = 0x4B400000


def _clamped(x: Any, low: int, high: int) -> Any:
    """Comparison and selection are one instruction on machines, where `maximumf` with its NaN is several."""
    bottom, top = constant(x.type, low), constant(x.type, high)
    x = arith_d.select(arith_d.cmpf(_F.OGT, x, bottom), x, bottom)
    return arith_d.select(arith_d.cmpf(_F.OLT, x, top), x, top)


@converts("requantize")
def convert_requantize(b: Builder, op: Op) -> View:
    """Clamped before it is rounded and shifted: the bounds are integers, and far below 2^22."""
    zero = op.attr("zero_point", 0)
    low, high = (int(v) - zero for v in limits(op.dtype))
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

    def body(s: list[Any]) -> Any:
        near = arith_d.addf(_clamped(s[0], low, high), constant(f32, MAGIC))
        whole = arith_d.addi(arith_d.bitcast(i32, near), constant(i32, zero - MAGIC_BITS))
        return arith_d.trunci(stored(op.dtype), whole)

    return b.pointwise(op.dims, op.dtype, op.operands, body)


@converts("round_clamp")
def convert_round_clamp(b: Builder, op: Op) -> View:
    low, high = op.attr("low"), op.attr("high")
    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: math_d.roundeven(_clamped(s[0], low, high)))

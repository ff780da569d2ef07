"""Requantisation of f32 numbers that are finite to narrow integers; narrow numbers out of bytes."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value, arith_d, ir, math_d
from xcc.passes.xt_to_linalg.build.builder import Builder, loop_index
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import constant, is_float, is_unsigned, limits, stored, width
from xcc.passes.xt_to_linalg.build.view import View, dim_expr

_F = arith_d.CmpFPredicate
MAGIC = 12582912        # 1.5 * 2^23: added to a small f32, it leaves the nearest integer in the low bits
MAGIC_BITS = 0x4B400000


def _clamped(x: Value, low: int, high: int) -> Any:
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


@converts("stretch")
def convert_stretch(b: Builder, op: Op) -> View:
    axis, times = op.attr("axis"), op.attr("times")
    x = op.operands[0].plain()
    return x.through(op.dims, [ir.AffineExpr.get_floor_div(dim_expr(d), times) if d == axis else dim_expr(d)
                               for d in range(len(op.dims))])


@converts("unpack")
def convert_unpack(b: Builder, op: Op) -> View:
    """Shifted in 32 bits: no machine shifts bytes, and what follows wants wider numbers anyway."""
    axis, bits, i32 = op.attr("axis"), width(op.dtype), ir.IntegerType.get_signless(32)
    count = 8 // bits
    x = op.operands[0].plain()
    packed = x.through(op.dims, [ir.AffineExpr.get_floor_div(dim_expr(d), count) if d == axis else dim_expr(d)
                                 for d in range(len(op.dims))])

    def body(s: list[Value]) -> Value:
        place = arith_d.remui(arith_d.index_cast(i32, loop_index(axis)), constant(i32, count))
        behind, wide = arith_d.muli(place, constant(i32, bits)), arith_d.extui(i32, s[0])
        if is_unsigned(op.dtype) or is_float(op.dtype):
            code = arith_d.andi(arith_d.shrui(wide, behind), constant(i32, (1 << bits) - 1))
        else:       # its sign becomes that of the whole number: what it is extended to is there already
            top = constant(i32, 32 - bits)
            code = arith_d.shrsi(arith_d.shli(wide, arith_d.subi(top, behind)), top)
        return arith_d.trunci(stored(op.dtype), code)

    return b.pointwise(op.dims, op.dtype, [packed], body)

"""Quantised numbers: conversions and integer products."""

from __future__ import annotations

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.matmul import BY_BLOCK
from xcc.dialects.xt.types import width
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.conv import convolve
from xcc.frontends.onnx.element_types import DType, from_onnx
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.convolution import add_bias
from xcc.frontends.shared.helpers import along, convert, element, rank_of, scalar, slice_axis, unsqueeze
from xcc.frontends.shared.products import matmul
from xcc.symbolic import Dim

LEVEL_OF_BYTES = 4
"""The accuracy_level of MatMulNBits that bytes suffice for."""


def _axis(cx: Context, scale: Value) -> int:
    """The quantised axis; -1 for one scale for all."""
    return cx.axis(default=1) if rank_of(scale) and xt.shape_of(scale) != (1,) and cx.rank(0) else -1


def scalar_or_vector(x: Value) -> Value:
    """One scale for all is rank 0."""
    return xt.reshape(x, shape=()) if rank_of(x) == 1 and xt.shape_of(x) == (1,) else x


@onnx_op("QuantizeLinear")
@onnx_op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(cx: Context) -> Value:
    """y = saturate(round(x / y_scale) + y_zero_point)."""
    number = cx.attr("output_dtype", 0)
    target = from_onnx(number) if number else cx.dtype(2) if cx.has(2) else np.dtype(np.uint8)
    return quantize(cx, cx[0], cx[1], cx.optional(2), target)


def quantize(cx: Context, x: Value, scale: Value, zero: Value | None, target: DType) -> Value:
    axis = _axis(cx, scale)
    scale = convert(scalar_or_vector(scale), element(x)) if element(scale) != element(x) else scalar_or_vector(scale)
    zero = None if zero is None else scalar_or_vector(zero)
    return xt.quantize(x, scale, zero, axis=axis, block=cx.attr("block_size", 0), dtype=target)


@onnx_op("DequantizeLinear")
@onnx_op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(cx: Context) -> Value:
    """y = (x - x_zero_point) * x_scale."""
    scale = cx[1]
    zero = cx.optional(2)
    number = cx.attr("output_dtype", 0)
    target = from_onnx(number) if number else cx.dtype(1)
    out = xt.dequantize(cx[0], scalar_or_vector(scale), None if zero is None else scalar_or_vector(zero),
                        axis=_axis(cx, scale), block=cx.attr("block_size", 0))
    return convert(out, target)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(cx: Context) -> tuple[Value, ...]:
    """y, y_scale, y_zero_point = DynamicQuantizeLinear(x): ui8 over the range of x and 0."""
    return tuple(xt.dynamic_quantize(cx[0]))


def centered(x: Value, zero: Value | None, axis: int = -1) -> Value:
    """x - zero point, in i32; a vector of zero points lies along `axis`."""
    wide = convert(x, "i32")
    if zero is None:
        return wide
    point = scalar_or_vector(convert(zero, "i32"))
    if rank_of(point) == 1:
        point = along(point, axis % rank_of(x), rank_of(x))
    return xt.sub(wide, point)


@onnx_op("MatMulInteger")
def matmul_integer(cx: Context) -> Value:
    """Y = (A - a_zero_point) * (B - b_zero_point) in i32; vectors of zero points are by row of A, by column of B."""
    a = centered(cx[0], cx.optional(2), -2)
    b = centered(cx[1], cx.optional(3), -1)
    return matmul(a, b)


@onnx_op("ConvInteger")
def conv_integer(cx: Context) -> Value:
    """y = Conv(x - x_zero_point, w - w_zero_point) in i32."""
    return convolve(cx, centered(cx[0], cx.optional(2)), centered(cx[1], cx.optional(3), 0))


def requantized(cx: Context, total: Value, factor: Value, point: int, target: DType) -> Value:
    """i32 sums times a factor, rounded, shifted by the zero point in operand `point` and saturated to `target`."""
    scaled = xt.mul(convert(total, element(factor)), factor)
    known = cx.tensor(point).const if cx.has(point) else np.zeros(())
    if known is not None and known.size == 1 and element(scaled) == "f32":
        return xt.requantize(scaled, zero_point=int(known.reshape(-1)[0]), dtype=target)
    zero = convert(scalar_or_vector(cx[point]), element(factor))
    limits = np.iinfo(target)
    shifted = xt.add(xt.round(scaled), zero)
    return convert(xt.minimum(xt.maximum(shifted, scalar(limits.min, shifted)), scalar(limits.max, shifted)), target)


@onnx_op("QLinearMatMul")
def qlinear_matmul(cx: Context) -> Value:
    """y = requantised (a - a_zp)(b - b_zp) * a_scale * b_scale / y_scale."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale = (cx[i] for i in range(7))
    total = matmul(centered(a, a_zero, -2), centered(b, b_zero, -1))
    sa, sb, sy = (convert(scalar_or_vector(s), "f32") for s in (a_scale, b_scale, y_scale))
    if rank_of(sa) == 1:
        sa = unsqueeze(sa, [1])
    return requantized(cx, total, xt.div(xt.mul(sa, sb), sy), 7, cx.dtype(7))


@onnx_op("QLinearConv")
def qlinear_conv(cx: Context) -> Value:
    """y = requantised Conv(x - x_zp, w - w_zp) + B."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale = (cx[i] for i in range(7))
    total = convolve(cx, centered(x, x_zero), centered(w, w_zero, 0))
    if cx.has(8):
        total = add_bias(total, convert(cx[8], "i32"))
    sw = scalar_or_vector(w_scale)
    factor = xt.div(xt.mul(scalar_or_vector(x_scale), sw), scalar_or_vector(y_scale))
    if rank_of(factor) == 1:
        factor = along(factor, 1, rank_of(x))
    return requantized(cx, total, factor, 7, cx.dtype(7))


@onnx_op("MatMulNBits", domain="com.microsoft")
def matmul_n_bits(cx: Context) -> Value:
    """Y = A * dequantised(B)': B [n, blocks, block*bits/8] packs `bits`-wide numbers with a scale for each block.

    accuracy_level 4 lets A be rounded to bytes by block, which targets do where their products of bytes are faster.
    """
    a, packed, scales = cx[0], cx[1], cx[2]
    k, n, bits, size = (int(cx.attr(v)) for v in ("K", "N", "bits", "block_size"))
    if bits not in (2, 4, 8):
        cx.fail(f"{bits} bits are not supported; 2, 4 and 8 are")
    if cx.attr("weight_prepacked", 0):
        cx.fail("weights in the order of a device (weight_prepacked) are not supported")
    blocks = -(-k // size)
    narrow = f"ui{bits}"
    values = unpacked(xt.reshape(packed, shape=(n, blocks * size * bits // 8)), k, narrow)
    kind = element(scales)
    zero = xt.constant(np.full((n, blocks), 1 << (bits - 1)), narrow)
    if cx.has(3):
        zero = cx[3]
        if element(zero) == "ui8":
            zero = unpacked(xt.reshape(zero, shape=(n, -(-blocks * bits // 8))), blocks, narrow)
    scales = xt.reshape(scales, shape=(n, blocks))
    if element(zero) == narrow and not cx.has(4):
        weight = xt.dequantize(values, scales, zero, axis=1, block=size)
    else:
        zero, scales = (_by_column(cx, convert(xt.reshape(v, shape=(n, blocks)), kind), size, k)
                        for v in (zero, scales))
        weight = xt.mul(xt.sub(convert(values, kind), zero), scales)
    out = xt.dot_general(a, convert(weight, element(a)), lhs_contract=(cx.rank(0) - 1,), rhs_contract=(1,),
                         precision=BY_BLOCK if cx.attr("accuracy_level", 0) == LEVEL_OF_BYTES else "")
    return xt.add(out, cx[5]) if cx.has(5) else out


def _by_column(cx: Context, x: Value, size: int, k: int) -> Value:
    """[n, blocks] -> [n, k]: of the block that each column is in, or that g_idx, operand 4, names for it."""
    if cx.has(4):
        return xt.gather(x, slice_axis(cx[4], 0, 0, k), axis=1)
    return xt.stretch(x, axis=1, times=size, size=(k,))


def unpacked(x: Value, size: Dim, kind: str) -> Value:
    """The first `size` numbers of each row (last axis) of bytes."""
    last = rank_of(x) - 1
    row = symbolic.ceildiv(size, 8 // width(kind))
    whole = x if xt.shape_of(x)[last] == row else slice_axis(x, last, 0, row)
    return whole if kind == "ui8" else xt.unpack(whole, axis=last, size=(size,), dtype=kind)

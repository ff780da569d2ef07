"""Quantised products and look-ups of com.microsoft whose results are floats."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.microsoft import embedded
from xcc.frontends.onnx.quant import centered, scalar_or_vector, unpacked
from xcc.frontends.onnx.recurrent import lstm_of
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, full, rank_of, unsqueeze
from xcc.frontends.shared.products import matmul

MS = "com.microsoft"


@onnx_op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(cx: Context) -> Value:
    """Y = A * (B - b_zero_point) * b_scale + bias, A quantised over its own range."""
    a, scale, zero = xt.dynamic_quantize(cx[0])
    total = matmul(centered(a, zero, -2), centered(cx[1], cx.optional(3), -1))
    return scaled(cx, total, scale, cx[2], 4)


@onnx_op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(cx: Context) -> Value:
    """Y = (A - a_zero_point) * (B - b_zero_point) * a_scale * b_scale + bias."""
    total = matmul(centered(cx[0], cx.optional(4), -2), centered(cx[1], cx.optional(5), -1))
    return scaled(cx, total, cx[2], cx[3], 6)


def scaled(cx: Context, total: Value, a_scale: Value, b_scale: Value, bias: int) -> Value:
    """Sums of integers as floats, and operand `bias` added."""
    factor = xt.mul(scalar_or_vector(a_scale), scalar_or_vector(b_scale))
    out = xt.mul(convert(total, element(factor)), factor)
    return xt.add(out, cx[bias]) if cx.has(bias) else out


@onnx_op("GatherBlockQuantized", domain=MS)
def gather_block_quantized(cx: Context) -> Value:
    """Rows of a quantised table, then what they mean: only what is looked up is decoded."""
    axis, size = cx.axis("gather_axis", 0), cx.attr("block_size", 128)
    along = cx.axis("quantize_axis", 1)
    if axis == along or along != cx.rank(0) - 1:
        cx.fail("tables are supported whose last axis is quantised, and another one looked up")
    bits = int(cx.attr("bits", 4))
    narrow = {4: "ui4", 8: "ui8"}.get(bits) if cx.dtype(0) == np.uint8 else element(cx[0])
    if narrow is None:
        cx.fail(f"{bits} bits are not supported; 4 and 8 are")
    columns = cx.shape(0)[-1] * (8 // bits) if cx.dtype(0) == np.uint8 else cx.shape(0)[-1]
    rows, scales = (xt.gather(cx[i], cx[1], axis=axis) for i in (0, 2))
    values = unpacked(rows, columns, narrow) if cx.dtype(0) == np.uint8 else rows
    blocks = xt.shape_of(scales)[-1]
    if cx.has(3):
        zero = xt.gather(cx[3], cx[1], axis=axis)
        zero = unpacked(zero, blocks, narrow) if cx.dtype(3) == np.uint8 else zero
    elif cx.dtype(0) == np.uint8:
        zero = full(xt.shape_of(scales), 1 << (bits - 1), narrow)
    else:
        zero = None
    return xt.dequantize(values, scales, zero, axis=rank_of(values) - 1, block=size)


@onnx_op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(cx: Context) -> tuple[Value, ...]:
    """LSTM whose W and R are bytes [directions, in, 4 * hidden], with W_scale, W_zero_point, R_scale and R_zero_point
    behind P; what is multiplied with them stays float, where onnxruntime rounds it to bytes."""
    return lstm_of(cx, *(_matrix(cx, i, at) for i, at in ((1, 8), (2, 10))))


def _matrix(cx: Context, i: int, scale: int) -> Value:
    """Operand `i` as floats [directions, 4 * hidden, in]; a scale and a zero point for each direction, or column."""
    columns = [xt.reshape(cx[j], shape=(*cx.shape(j), *(1,) * (3 - cx.rank(j)))) if cx.rank(j) == 1 else
               unsqueeze(cx[j], [1]) for j in (scale, scale + 1)]
    centre = xt.sub(convert(cx[i], "i32"), convert(columns[1], "i32"))
    return xt.transpose(xt.mul(convert(centre, "f32"), columns[0]), perm=(0, 2, 1))


@onnx_op("QEmbedLayerNormalization", domain=MS)
def quantised_embed_layer_normalization(cx: Context) -> tuple[Value, Value]:
    """EmbedLayerNormalization of tables of bytes: rows are decoded where they are looked up."""
    def table(i: int, rows: Value | None = None) -> Value:
        scale, zero = (scalar_or_vector(cx[j]) for j in (i + 6, i + 11))
        narrow = cx[i] if rows is None else xt.gather(cx[i], rows, axis=0)
        return xt.dequantize(narrow, scale, zero, axis=-1, block=0)

    return embedded(cx, table)[:2]

"""onnxruntime's quantised ops: what its quantiser writes in the QOperator form, as quantised float ops."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.norm import softmax_over
from xcc.frontends.onnx.pooling import averages
from xcc.frontends.onnx.quant import centered, quantize, requantized, scalar_or_vector
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import mean, scalar


def _dequantized(cx: Context, first: int) -> Value:
    """Operand `first` with its scale and zero point behind it, one of each."""
    zero = cx.optional(first + 2)
    return xt.dequantize(cx[first], scalar_or_vector(cx[first + 1]), None if zero is None else scalar_or_vector(zero),
                         axis=-1, block=0)


@onnx_op("QLinearAdd", "QLinearMul", domain="com.microsoft")
def qlinear_binary(cx: Context) -> Value:
    """C = requantised A + B or A * B."""
    x, y = _dequantized(cx, 0), _dequantized(cx, 3)
    out = xt.add(x, y) if cx.op == "QLinearAdd" else xt.mul(x, y)
    return quantize(cx, out, cx[6], cx.optional(7), cx.dtype(0))


def _average(cx: Context, x: Value) -> Value:
    rank = len(cx.shape(0))
    return mean(x, tuple(range(1, rank - 1)) if cx.attr("channels_last", 0) else tuple(range(2, rank)), keepdims=True)


def _leaky(cx: Context, x: Value) -> Value:
    return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, scalar(cx.attr("alpha", 0.01), x)), x)


def _windows(cx: Context, x: Value) -> Value:
    if cx.attr("channels_last", 0):
        cx.fail("channels_last is not supported")
    return averages(cx, x)


def _softmax(cx: Context, x: Value) -> Value:
    """`opset` is that of the Softmax that the model had."""
    return softmax_over(x, cx.axis(default=-1), flat=cx.attr("opset", 13) < 13)


_UNARY: dict[str, Callable[[Context, Value], Value]] = {
    "QLinearAveragePool": _windows, "QLinearGlobalAveragePool": _average, "QLinearLeakyRelu": _leaky,
    "QLinearSigmoid": lambda cx, x: xt.sigmoid(x), "QLinearSoftmax": _softmax}


@onnx_op(*_UNARY, domain="com.microsoft")
def qlinear_unary(cx: Context) -> Value:
    """Y = requantised f(X); inputs X, X_scale, X_zero_point, Y_scale, Y_zero_point."""
    return quantize(cx, _UNARY[cx.op](cx, _dequantized(cx, 0)), cx[3], cx.optional(4), cx.dtype(0))


@onnx_op("QLinearWhere", domain="com.microsoft")
def qlinear_where(cx: Context) -> Value:
    """Z = requantised X where the condition holds, else Y."""
    chosen = xt.select(cx[0], _dequantized(cx, 1), _dequantized(cx, 4))
    return quantize(cx, chosen, cx[7], cx.optional(8), cx.dtype(1))


@onnx_op("QLinearConcat", domain="com.microsoft")
def qlinear_concat(cx: Context) -> Value:
    """Y_scale, Y_zero_point, then (X, scale, zero point) for each part."""
    parts = [_dequantized(cx, i) for i in range(2, len(cx.inputs), 3)]
    return quantize(cx, xt.concatenate(*parts, axis=cx.attr("axis")), cx[0], cx[1], cx.dtype(2))


@onnx_op("QGemm", domain="com.microsoft")
def qgemm(cx: Context) -> Value:
    """Y = alpha * (A' - a_zp)(B' - b_zp) * scales + C in sums of integers; f32 where no Y_scale is given."""
    a, b = centered(cx[0], cx.optional(2)), centered(cx[3], cx.optional(5), 0 if cx.attr("transB", 0) else 1)
    total = xt.dot_general(a, b, lhs_contract=(0 if cx.attr("transA", 0) else 1,),
                           rhs_contract=(1 if cx.attr("transB", 0) else 0,))
    if cx.has(6):
        total = xt.add(total, cx[6])
    scale = xt.mul(scalar_or_vector(cx[1]), scalar_or_vector(cx[4]))
    if cx.attr("alpha", 1.0) != 1.0:
        scale = xt.mul(scale, scalar(cx.attr("alpha"), scale))
    if not cx.has(7):
        return xt.mul(xt.convert(total, dtype="f32"), scale)
    return requantized(cx, total, xt.div(scale, scalar_or_vector(cx[7])), 8, cx.dtype(8) if cx.has(8) else cx.dtype(0))

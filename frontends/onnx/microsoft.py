"""Ops of com.microsoft that optimised models hold."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.conv import convolve
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.convolution import add_bias
from xcc.frontends.shared.helpers import clip, convert, full, relu, scalar

MS = "com.microsoft"


@onnx_op("FusedConv", domain=MS)
def fused_conv(cx: Context) -> Value:
    """Y = activation(Conv(X, W, B?) + Z?)."""
    out = convolve(cx, cx[0], cx[1])
    out = add_bias(out, cx[2]) if cx.has(2) else out
    out = xt.add(out, cx[3]) if cx.has(3) else out
    return _activate(cx, out)


def _activate(cx: Context, x: Value) -> Value:
    name, params = cx.attr("activation", ""), cx.attr("activation_params", [])
    if not name:
        return x
    if name == "Relu":
        return relu(x)
    if name == "Clip":
        return clip(x, *params)
    if name == "LeakyRelu":
        return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, scalar(params[0], x)), x)
    if name == "HardSigmoid":
        return clip(xt.add(xt.mul(x, scalar(params[0], x)), scalar(params[1], x)), 0, 1)
    if name in ("Sigmoid", "Tanh"):
        return getattr(xt, name.lower())(x)
    cx.fail(f"activation '{name}' is not supported")


@onnx_op("FusedGemm", domain=MS)
def fused_gemm(cx: Context) -> Value:
    from xcc.frontends.onnx.matmul import gemm

    return _activate(cx, gemm(cx))


@onnx_op("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MS)
def skip_layer_normalization(cx: Context) -> tuple[Value, None, None, Value]:
    """Y, -, -, sum = norm(input + skip + bias?)."""
    simple = cx.op.startswith("SkipSimplified")
    bias_at = 3 if simple else 4
    total = xt.add(cx[0], cx[1])
    total = xt.add(total, cx[bias_at]) if cx.has(bias_at) else total
    axes, eps = (cx.rank(0) - 1,), cx.attr("epsilon", 1e-5)
    if simple:
        return xt.rms_norm(total, cx[2], axes=axes, eps=eps), None, None, total
    return xt.layer_norm(total, cx[2], cx.optional(3), axes=axes, eps=eps), None, None, total


@onnx_op("SimplifiedLayerNormalization", domain=MS)
def simplified_layer_normalization(cx: Context) -> Value:
    return xt.rms_norm(cx[0], cx[1], axes=tuple(range(cx.axis(default=-1), cx.rank(0))), eps=cx.attr("epsilon", 1e-5))


@onnx_op("EmbedLayerNormalization", domain=MS)
def embed_layer_normalization(cx: Context) -> tuple[Value, Value, Value]:
    """output, mask_index, sum? of tokens, segments?, tables of words, positions and segments?, gamma, beta, mask?."""
    return embedded(cx, lambda i, rows=None: cx[i] if rows is None else xt.gather(cx[i], rows, axis=0))


def embedded(cx: Context, table: Callable[..., Value]) -> tuple[Value, Value, Value]:
    """EmbedLayerNormalization; `table(i, rows)`: rows of operand `i`, `table(i)`: all of it."""
    tokens, total = cx[0], table(2, cx[0])
    batch, seq = xt.shape_of(tokens)
    places = cx[8] if cx.op == "EmbedLayerNormalization" and cx.has(8) else \
        xt.iota(shape=(1, seq), axis=1, dtype="i64")
    total = xt.add(total, table(3, places))
    if cx.has(1):
        total = xt.add(total, table(4, cx[1]))
    out = xt.layer_norm(total, table(5), table(6), axes=(2,), eps=cx.attr("epsilon", 1e-12))
    counted = full((batch,), 0, "i32") if not cx.has(7) or not cx.attr("mask_index_type", 1) else \
        xt.reduce(convert(xt.compare(cx[7], scalar(1, cx[7]), direction="eq"), "i32"), kind="sum", axes=(1,))
    return out, counted, total

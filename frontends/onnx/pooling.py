"""Pools."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.windows import pool_padding, window_of
from xcc.frontends.shared.helpers import mean, scalar
from xcc.frontends.shared.pooling import average, pool
from xcc.frontends.shared.windows import Window


def _window(cx: Context, spatial: Shape | None = None) -> tuple[Window, Shape]:
    spatial = cx.shape(0)[2:] if spatial is None else spatial
    window = window_of(cx, spatial, tuple(cx.attr("kernel_shape")))
    return window, pool_padding(cx, spatial, window)


@onnx_op("MaxPool")
def max_pool(cx: Context) -> Value:
    """Y, Indices? = MaxPool(X)."""
    w, high = _window(cx)
    if cx.wants(1):
        return xt.max_pool_with_indices(cx[0], window=w.kernel, strides=w.strides, low=w.low, high=high,
                                        dilations=w.dilations, storage_order=cx.attr("storage_order", 0))
    return pool(cx[0], "max", w, high)


@onnx_op("NhwcMaxPool", domain="com.microsoft")
def max_pool_of_channels_last(cx: Context) -> Value:
    """As MaxPool, of X [n, h, w, c]."""
    last = cx.rank(0) - 1
    w, high = _window(cx, cx.shape(0)[1:-1])
    out = pool(xt.transpose(cx[0], perm=(0, last, *range(1, last))), "max", w, high)
    return xt.transpose(out, perm=(0, *range(2, last + 1), 1))


@onnx_op("AveragePool")
def average_pool(cx: Context) -> Value:
    return averages(cx, cx[0])


def averages(cx: Context, x: Value) -> Value:
    """Sums of `x`, like operand 0, over counts: padding counts with count_include_pad, that of `pool_padding` never."""
    w, high = _window(cx)
    return average(x, w, high, bool(cx.attr("count_include_pad", 0)))


@onnx_op("LpPool")
def lp_pool(cx: Context) -> Value:
    """(sum |x|^p)^(1/p)."""
    x, p = cx[0], cx.attr("p", 2)
    w, high = _window(cx)
    return _root(pool(_power(x, p), "sum", w, high), p)


def _power(x: Value, p: int) -> Value:
    if p == 1:
        return xt.abs(x)
    return xt.mul(x, x) if p == 2 else xt.pow(xt.abs(x), scalar(p, x))


def _root(x: Value, p: int) -> Value:
    if p == 1:
        return x
    return xt.sqrt(x) if p == 2 else xt.pow(x, scalar(1 / p, x))


def _spatial(cx: Context) -> tuple[int, ...]:
    return tuple(range(2, cx.rank(0)))


@onnx_op("GlobalAveragePool")
def global_average_pool(cx: Context) -> Value:
    return mean(cx[0], _spatial(cx))


@onnx_op("GlobalMaxPool")
def global_max_pool(cx: Context) -> Value:
    return xt.reduce(cx[0], kind="max", axes=_spatial(cx), keepdims=True)


@onnx_op("GlobalLpPool")
def global_lp_pool(cx: Context) -> Value:
    p = cx.attr("p", 2)
    return _root(xt.reduce(_power(cx[0], p), kind="sum", axes=_spatial(cx), keepdims=True), p)

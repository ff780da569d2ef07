"""Ops of com.microsoft that its optimiser writes into diffusion models for GPUs: channels lie last."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.conv import convolve
from xcc.frontends.onnx.microsoft import MS
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, rank_of, split


def _channels_first(x: Value) -> Value:
    """[n, space..., c] -> [n, c, space...]."""
    return xt.transpose(x, perm=(0, rank_of(x) - 1, *range(1, rank_of(x) - 1)))


def _channels_last(x: Value) -> Value:
    return xt.transpose(x, perm=(0, *range(2, rank_of(x)), 1))


@onnx_op("NhwcConv", domain=MS)
def nhwc_conv(cx: Context) -> Value:
    """Y [n, h, w, m] = Conv(X [n, h, w, c], W [m, kh, kw, c/group], B?)."""
    out = _channels_last(convolve(cx, _channels_first(cx[0]), _channels_first(cx[1])))
    return xt.add(out, cx[2]) if cx.has(2) else out


@onnx_op("GroupNorm", domain=MS)
def group_norm(cx: Context) -> Value:
    """Y = activation(GroupNorm(X, gamma, beta))."""
    return _normalized(cx, cx[0])


@onnx_op("SkipGroupNorm", domain=MS)
def skip_group_norm(cx: Context) -> tuple[Value, Value]:
    """Y, S = activation(GroupNorm(S, gamma, beta)) with S = X + skip + bias?; skip may be of whole images."""
    skip = cx[3]
    if rank_of(skip) == 2:
        n, c = xt.shape_of(skip)
        skip = xt.reshape(skip, shape=(n, 1, 1, c))
    total = xt.add(cx[0], skip)
    total = xt.add(total, cx[4]) if cx.has(4) else total
    return _normalized(cx, total), total


def _normalized(cx: Context, x: Value) -> Value:
    """In f32, as gamma and beta are."""
    last = cx.attr("channels_last", 1)
    wide = convert(x, element(cx[1]))
    out = xt.group_norm(_channels_first(wide) if last else wide, cx[1], cx[2], groups=cx.attr("groups"),
                        eps=cx.attr("epsilon", 1e-5))
    out = xt.mul(out, xt.sigmoid(out)) if cx.attr("activation") == 1 else out
    return convert(_channels_last(out) if last else out, element(x))


@onnx_op("BiasAdd", domain=MS)
def bias_add(cx: Context) -> Value:
    """Y = X + bias + skip."""
    return xt.add(xt.add(cx[0], cx[1]), cx[2])


@onnx_op("BiasSplitGelu", domain=MS)
def bias_split_gelu(cx: Context) -> Value:
    """Y = left * gelu(right), the halves of the last dim of X + bias."""
    total = xt.add(cx[0], cx[1])
    half = symbolic.floordiv(cx.shape(0)[-1], 2)
    left, right = split(total, rank_of(total) - 1, (half, half))
    return xt.mul(left, xt.gelu(right, approximate="none"))

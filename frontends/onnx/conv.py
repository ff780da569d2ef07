"""Convolutions."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.windows import window_of
from xcc.frontends.shared.convolution import add_bias, transposed
from xcc.frontends.shared.windows import Window
from xcc.symbolic import Dim


@onnx_op("Conv")
def conv(cx: Context) -> Value:
    """Y = Conv(X, W, B?)."""
    out = convolve(cx, cx[0], cx[1])
    return add_bias(out, cx[2]) if cx.has(2) else out


def convolve(cx: Context, x: Value, w: Value, dtype: str | None = None) -> Value:
    """The convolution by the node's attributes."""
    spatial = xt.shape_of(x)[2:]
    kernel = xt.shape_of(w)[2:]
    window = window_of(cx, spatial, kernel)
    return xt.convolution(x, w, strides=window.strides, low=window.low, high=window.high,
                          rhs_dilation=window.dilations, groups=cx.attr("group", 1), dtype=dtype)


@onnx_op("ConvTranspose")
def conv_transpose(cx: Context) -> Value:
    """Y = ConvTranspose(X, W [C, M/group, k...], B?): a convolution of the spread input with the flipped filter."""
    x, w = cx[0], cx[1]
    groups = cx.attr("group", 1)
    window = _transposed_window(cx, cx.shape(0)[2:], tuple(xt.shape_of(w)[2:]))
    out = transposed(x, w, window.low, window.high, window.strides, window.dilations, groups)
    return add_bias(out, cx[2]) if cx.has(2) else out


def _transposed_window(cx: Context, spatial: Shape, kernel: Shape) -> Window:
    """`low` and `high` are what is cut from the full result."""
    n = len(kernel)
    strides = tuple(cx.attr("strides", [1] * n))
    dilations = tuple(cx.attr("dilations", [1] * n))
    extra = tuple(cx.attr("output_padding", [0] * n))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = cx.attr("pads", [0] * 2 * n)
    begin: list[Dim] = list(pads[:n])
    end: list[Dim] = list(pads[n:])
    wanted = cx.attr("output_shape")
    auto = cx.attr("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * s for size, s in zip(spatial, strides, strict=True)]
    if wanted is not None:
        for i, total in enumerate(wanted[-n:]):
            padding = symbolic.dim_max((spatial[i] - 1) * strides[i] + spans[i] + extra[i] - total, 0)
            small = symbolic.floordiv(padding, 2)
            begin[i], end[i] = (small, padding - small) if auto == "SAME_UPPER" else (padding - small, small)
            lacking = total - ((spatial[i] - 1) * strides[i] + spans[i] + extra[i])
            if isinstance(lacking, int) and lacking > 0:
                extra = (*extra[:i], extra[i] + lacking, *extra[i + 1:])
    elif auto == "VALID":
        begin = end = [0] * n
    return Window(kernel, strides, dilations, tuple(begin), tuple(e - x for e, x in zip(end, extra, strict=True)))


@onnx_op("DeformConv", since=19)
def deform_conv(cx: Context) -> Value:
    """Y = DeformConv(X, W, offset, B?, mask?)."""
    window = window_of(cx, cx.shape(0)[2:], cx.shape(1)[2:])
    return xt.deform_conv(cx[0], cx[1], cx[2], cx.optional(3), cx.optional(4), strides=window.strides,
                          low=window.low, high=window.high, dilations=window.dilations,
                          groups=cx.attr("group", 1), offset_groups=cx.attr("offset_group", 1))


@onnx_op("Col2Im", since=18)
def col2im(cx: Context) -> Value:
    """output = Col2Im(input, image_shape, block_shape)."""
    image, block = cx.dims(1), cx.static_ints(2)
    n = len(image)
    pads = cx.attr("pads", [0] * 2 * n)
    return xt.col2im(cx[0], image=image, block=block, strides=tuple(cx.attr("strides", [1] * n)),
                     low=tuple(pads[:n]), high=tuple(pads[n:]), dilations=tuple(cx.attr("dilations", [1] * n)))


@onnx_op("CausalConvWithState", since=27)
def causal_conv_with_state(cx: Context) -> tuple[Value, Value]:
    """Depthwise 1-D convolution of [past_state | input]: output and the new state."""
    return _causal_conv(cx)


def _causal_conv(cx: Context) -> tuple[Value, Value]:
    x, w = cx[0], cx[1]
    batch, channels, _ = cx.shape(0)
    k = cx.shape(1)[-1]
    if cx.has(3):
        past = cx[3]
    else:
        past = xt.broadcast(xt.scalar(0, xt.element_type_of(x)), shape=(batch, channels, k - 1))
    joined = xt.concatenate(past, x, axis=2)
    length = xt.shape_of(joined)[2]
    out = xt.convolution(joined, w, groups=channels)
    if cx.has(2):
        out = add_bias(out, cx[2])
    activation = cx.attr("activation", "none")
    if activation in ("silu", "swish"):
        out = xt.mul(out, xt.sigmoid(out))
    state = xt.slice(joined, starts=(0, 0, length - (k - 1)), limits=xt.shape_of(joined))
    return out, state

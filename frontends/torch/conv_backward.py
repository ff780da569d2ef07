"""Gradients of convolutions."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.convolution import filter_gradient, input_gradient
from xcc.frontends.torch.context import Context, Shape
from xcc.frontends.torch.registry import aten

Options = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""Padding, strides, dilations, groups."""


@aten("convolution_backward")
def convolution_backward(cx: Context) -> tuple[Value | None, ...]:
    """The gradients of input, weight and bias, those that `output_mask` asks for."""
    grad, x, w = cx.tensor("grad_output"), cx.tensor("input"), cx.tensor("weight")
    wants = cx["output_mask"]
    n = len(xt.shape_of(w)) - 2
    options = (cx.ints("padding", n), cx.ints("stride", n), cx.ints("dilation", n), int(cx.number("groups")))
    pair = _transposed if cx["transposed"] else _plain
    bias = xt.reduce(grad, kind="sum", axes=(0, *range(2, 2 + n))) if wants[2] else None
    return *pair(cx, grad, x, w, options), bias


def _plain(cx: Context, grad: Value, x: Value, w: Value, options: Options) -> tuple[Value | None, Value | None]:
    wants = cx["output_mask"]
    to_input = input_gradient(grad, w, tuple(xt.shape_of(x)[2:]), *options) if wants[0] else None
    return to_input, _filter(cx, x, grad, tuple(xt.shape_of(w)[2:]), options)


def _transposed(cx: Context, grad: Value, x: Value, w: Value, options: Options) -> tuple[Value | None, Value | None]:
    """A transposed convolution is the adjoint of one by the same filter, so input and gradient change places."""
    wants = cx["output_mask"]
    low, strides, dilations, groups = options
    kernel = tuple(xt.shape_of(w)[2:])
    to_input = None
    if wants[0]:
        high = tuple((n - 1) * s + (k - 1) * d + 1 - out - p for n, s, k, d, out, p in
                     zip(xt.shape_of(x)[2:], strides, kernel, dilations, xt.shape_of(grad)[2:], low, strict=True))
        to_input = xt.convolution(grad, w, strides=strides, low=low, high=high, rhs_dilation=dilations, groups=groups)
    return to_input, _filter(cx, grad, x, kernel, options)


def _filter(cx: Context, x: Value, grad: Value, kernel: Shape, options: Options) -> Value | None:
    return filter_gradient(x, grad, kernel, *options, cx.precision("convolution")) if cx["output_mask"][1] else None

"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.convolution import add_bias, transposed
from xcc.frontends.shared.helpers import convert, element, rank_of, squeeze, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.matmul import accumulated
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


@aten("conv1d", "conv2d", "conv3d")
def conv(cx: Context) -> Value:
    """Y = conv(input, weight) + bias; an input without batch is a batch of one."""
    pads = cx.ints("padding", _spatial(cx))
    return _batched(cx, lambda x, kind: _conv(cx, x, kind, pads, pads))


@aten("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_padded(cx: Context) -> Value:
    """Padding as a word: valid is none; same keeps the size, an odd element goes to the end."""
    n = _spatial(cx)
    if cx["padding"] == "valid":
        return _batched(cx, lambda x, kind: _conv(cx, x, kind, (0,) * n, (0,) * n))
    total = [d * (k - 1) for d, k in zip(cx.ints("dilation", n), _kernel(cx), strict=True)]
    low = tuple(t // 2 for t in total)
    high = tuple(t - small for t, small in zip(total, low, strict=True))
    return _batched(cx, lambda x, kind: _conv(cx, x, kind, low, high))


@aten("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(cx: Context) -> Value:
    return _batched(cx, lambda x, kind: _transposed(cx, x, kind))


@aten("convolution", "_convolution", "_convolution.deprecated")
def convolution(cx: Context) -> Value:
    """Any of the above, as `transposed` says."""
    if cx["transposed"]:
        return _batched(cx, lambda x, kind: _transposed(cx, x, kind))
    return conv(cx)


def _spatial(cx: Context) -> int:
    return cx.rank("weight") - 2


def _kernel(cx: Context) -> tuple[int, ...]:
    sizes = cx.shape("weight")[2:]
    if not all(isinstance(k, int) for k in sizes):
        cx.fail(f"the filter's sizes must be numbers, but are {[str(k) for k in sizes]}")
    return sizes  # type: ignore[return-value]


def _batched(cx: Context, f: Callable[[Value, str], Value]) -> Value:
    """f of the input with a batch dim, which goes again where the input has none, and the type of its sums; then the
    bias, and narrow floats are rounded."""
    x, bias = cx.tensor("input"), cx.optional("bias")
    alone = rank_of(x) == cx.rank("weight") - 1
    kind = element(x) if bias is None else accumulated(element(x))
    out = f(unsqueeze(x, [0]) if alone else x, kind)
    out = out if bias is None else convert(add_bias(out, convert(bias, kind)), element(x))
    return squeeze(out, [0]) if alone else out


def _conv(cx: Context, x: Value, kind: str, low: tuple[Dim, ...], high: tuple[Dim, ...]) -> Value:
    n = _spatial(cx)
    return xt.convolution(x, cx.tensor("weight"), strides=cx.ints("stride", n), low=low, high=high,
                          rhs_dilation=cx.ints("dilation", n), groups=int(cx.number("groups")), dtype=kind)


def _transposed(cx: Context, x: Value, kind: str) -> Value:
    n = _spatial(cx)
    begin = cx.ints("padding", n)
    end = tuple(p - extra for p, extra in zip(begin, cx.ints("output_padding", n), strict=True))
    return transposed(x, cx.tensor("weight"), begin, end, cx.ints("stride", n), cx.ints("dilation", n),
                      int(cx.number("groups")), kind)

"""Convolutions, their transposes and their adjoints."""

from __future__ import annotations

import math
from typing import Any

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import along, rank_of
from xcc.frontends.shared.windows import Shape, Window


def add_bias(x: Value, bias: Value) -> Value:
    """x [N, C, ...] + bias [C]."""
    return xt.add(x, along(bias, 1, rank_of(x)))


def transposed(x: Value, w: Value, begin: Shape, end: Shape, strides: tuple[int, ...], dilations: tuple[int, ...],
               groups: int, dtype: str | None = None) -> Value:
    """The transposed convolution with w [C, M/groups, kernel...]: one of the spread input with the flipped filter.

    `begin` and `end` elements are cut from the full result; a negative number appends zeros. `dtype` is the result's
    (default: that of x).
    """
    window = Window(tuple(xt.shape_of(w)[2:]), strides, dilations, begin, end)
    low = tuple(span - 1 - b for span, b in zip(window.spans(), begin, strict=True))
    high = tuple(span - 1 - e for span, e in zip(window.spans(), end, strict=True))
    return xt.convolution(x, _transposed_filter(w, groups), low=low, high=high, lhs_dilation=strides,
                          rhs_dilation=dilations, groups=groups, dtype=dtype)


def _transposed_filter(w: Value, groups: int) -> Value:
    """[C, M/groups, kernel...] -> [M, C/groups, kernel...], flipped."""
    c, m, *kernel = xt.shape_of(w)
    flipped = xt.reverse(w, axes=tuple(range(2, 2 + len(kernel))))
    grouped = xt.reshape(flipped, shape=(groups, symbolic.floordiv(c, groups), m, *kernel))
    swapped = xt.transpose(grouped, perm=(0, 2, 1, *range(3, 3 + len(kernel))))
    return xt.reshape(swapped, shape=(m * groups, symbolic.floordiv(c, groups), *kernel))


def input_gradient(grad: Any, w: Value, shape: Shape, low: Shape, strides: tuple[int, ...], dilations: tuple[int, ...],
                   groups: int) -> Value:
    """What a convolution by w [O, I/groups, ...] with padding `low` at the front gives its input of spatial `shape`."""
    spans = Window(tuple(xt.shape_of(w)[2:]), strides, dilations, low, low).spans()
    outs = xt.shape_of(grad)[2:]
    end = tuple((o - 1) * s + span - p - n for o, s, span, p, n in zip(outs, strides, spans, low, shape, strict=True))
    return transposed(grad, w, low, end, strides, dilations, groups)


def filter_gradient(x: Value, grad: Any, kernel: Shape, low: Shape, strides: tuple[int, ...],
                    dilations: tuple[int, ...], groups: int, precision: str = "") -> Value:
    """What a convolution of x [N, I, ...] gives its filter, [O, I/groups, kernel...]: x with grad as the filter.

    The batch is what is summed over; strides and dilations change places. A filter of one pixel is a matrix,
    whose product has the `precision`.
    """
    batch, channels, *spatial = xt.shape_of(x)
    if groups == 1 and all(k == 1 for k in kernel) and not any(low):
        return _matrix_gradient(x, grad, strides, precision)
    outs = xt.shape_of(grad)[2:]
    high = tuple((k - 1) * d + (o - 1) * s + 1 - n - p for k, d, o, s, n, p in
                 zip(kernel, dilations, outs, strides, spatial, low, strict=True))
    if groups == channels == xt.shape_of(grad)[1] != 1:
        return _depthwise_gradient(x, grad, (low, high), dilations, strides)
    size = symbolic.floordiv(channels, groups)
    rest = tuple(range(3, 3 + len(spatial)))
    grouped = xt.reshape(x, shape=(batch, groups, size, *spatial))
    images = xt.reshape(xt.transpose(grouped, perm=(2, 1, 0, *rest)), shape=(size, groups * batch, *spatial))
    filters = xt.transpose(grad, perm=(1, 0, *range(2, 2 + len(spatial))))
    out = xt.convolution(images, filters, strides=dilations, low=low, high=high, rhs_dilation=strides, groups=groups)
    return xt.transpose(out, perm=(1, 0, *range(2, 2 + len(spatial))))


def _depthwise_gradient(x: Value, grad: Value, pads: tuple[Shape, Shape], dilations: tuple[int, ...],
                        strides: tuple[int, ...]) -> Value:
    """The channels of x [N, C, ...] by those of grad, over the batch as one more spatial dim, which neither moves."""
    n = len(strides)
    last = (0, *range(2, n + 2), 1)     # all of it with the channels last, as it then lies
    pixels, pulls = (xt.transpose(v, perm=last) for v in (x, grad))
    channels = xt.shape_of(x)[1]
    image = xt.transpose(xt.reshape(pixels, shape=(1, *xt.shape_of(pixels))), perm=(0, n + 2, *range(1, n + 2)))
    filters = xt.reshape(pulls, shape=(*xt.shape_of(pulls)[:-1], 1, channels))
    filters = xt.transpose(filters, perm=(n + 2, n + 1, *range(n + 1)))
    (low, high) = pads
    out = xt.convolution(image, filters, strides=(1, *dilations), low=(0, *low), high=(0, *high),
                         rhs_dilation=(1, *strides), groups=channels)
    return xt.reshape(out, shape=(channels, 1, *xt.shape_of(out)[-n:]))


def _matrix_gradient(x: Value, grad: Value, strides: tuple[int, ...], precision: str) -> Value:
    """The product of the pixels of `grad` [N, O, ...] and of those of `x` that a filter of one pixel has met."""
    outs = tuple(xt.shape_of(grad)[2:])
    if any(s != 1 for s in strides):
        limits = (*xt.shape_of(x)[:2], *((o - 1) * s + 1 for o, s in zip(outs, strides, strict=True)))
        x = xt.slice(x, starts=(0,) * len(limits), limits=limits, strides=(1, 1, *strides))

    def pixels(image: Value) -> Value:
        batch, channels, *spatial = xt.shape_of(image)
        rows = xt.transpose(image, perm=(0, *range(2, 2 + len(spatial)), 1))
        return xt.reshape(rows, shape=(math.prod(spatial, start=batch), channels))

    out = xt.dot_general(pixels(grad), pixels(x), lhs_contract=(0,), rhs_contract=(0,), precision=precision,
                         dtype=xt.TensorType.of(x).dtype)
    return xt.reshape(out, shape=(*xt.shape_of(out), *(1,) * len(outs)))

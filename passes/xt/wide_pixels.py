"""Convolutions of images with few channels read whole aligned words: channels are padded, neighbouring pixels joined.

    %y = xt.convolution(%x, %w) {strides = [2, 2], low = [3, 3]} : 1x224x224x3, 7x7x3x64 -> 1x112x112x64
becomes, with a pixel of 4 channels and two of them read as one of 8 (16 bytes in f16):
    %p = xt.reshape(xt.pad(%x)) : 1x224x112x8
    %y = xt.convolution(%p, %v) {strides = [2, 1], low = [3, 2]} : 1x224x112x8, 7x4x8x64 -> 1x112x112x64
where %v is %w with zeros for what was added, made at compile time where %w is known then.

As many pixels are joined as the window steps over, so that a window always starts with a whole one. It pays where the
pixels are shorter than a word and the sum grows by less than MOST. A filter that is computed is padded in each run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import is_stored, rewrite
from xcc.symbolic import Dim

WORDS = (16, 8)     # bytes of an access, the best first
MOST = 2.0          # times the terms of the sum
SMALL = 8           # times that a filter which is computed goes into the image


@dataclass(frozen=True)
class _Plan:
    """`joined` pixels of `channels` each; columns of zeros before and after the filter's, new padding before."""

    joined: int
    channels: int
    before: int
    columns: int
    low: int


@register_pass
class WidePixels(Pass):
    """Pads channels and joins pixels of convolutions whose pixels are shorter than an access to memory."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": lambda op: _widened(op, p) if (p := _plan(op)) is not None else None})


def _plan(op: Operation) -> _Plan | None:
    a = xt.attrs_of(op)
    x, w = (xt.shape_of(v) for v in op.operands)
    if (a.layout, a.filter, a.groups) != ("NHWC", "HWIO", 1) or not _is_cheap(op.operands[1], x) \
            or any(d != 1 for d in (a.lhs_dilation[-1], a.rhs_dilation[-1])):
        return None
    channels, kernel, low, width = w[-2], w[-3], a.low[-1], x[-2]
    if not isinstance(channels, int) or not isinstance(kernel, int) or not isinstance(low, int):
        return None
    step = int(a.strides[-1])
    joined = step if isinstance(width, int) and isinstance(xt.shape_of(op.results[0])[-2], int) \
        and width % step == 0 else 1
    size = xt.width(xt.TensorType.of(op.operands[0]).dtype) // 8
    for word in WORDS:
        if channels * size >= word:
            return None
        made = channels
        while made * joined * size % word:
            made += 1
        start = -(-low // joined)
        before = joined * start - low
        columns = -(-(kernel + before) // joined)
        if columns * joined * made <= MOST * kernel * channels:
            return _Plan(joined, made, before, columns, start)
    return None


def _is_cheap(w: Value, x: tuple[Dim, ...]) -> bool:
    """Whether the filter is rearranged at compile time or, as in training, much less than the image."""
    shape = xt.shape_of(w)
    known = math.prod(_sizes(x))
    return is_stored(w) or len(_sizes(shape)) == len(shape) and math.prod(_sizes(shape)) * SMALL <= known


def _sizes(shape: tuple[Dim, ...]) -> list[int]:
    return [d for d in shape if isinstance(d, int)]


def _widened(op: Operation, p: _Plan) -> Value:
    a = xt.attrs_of(op)
    x, w = op.operands
    shape, filters = xt.shape_of(x), xt.shape_of(w)
    more = p.channels - filters[-2]
    x = xt.pad(x, low=(0,) * len(shape), high=(*(0,) * (len(shape) - 1), more))
    after = p.columns * p.joined - p.before - filters[-3]
    rank = len(filters)
    w = xt.pad(w, low=(*(0,) * (rank - 3), p.before, 0, 0), high=(*(0,) * (rank - 3), after, more, 0))
    high, strides = a.high, a.strides
    if p.joined > 1:        # the window steps by one joined pixel
        x = xt.reshape(x, shape=(*shape[:-2], shape[-2] // p.joined, p.joined * p.channels))
        w = xt.reshape(w, shape=(*filters[:-3], p.columns, p.joined * p.channels, filters[-1]))
        strides = (*a.strides[:-1], 1)
        high = (*a.high[:-1], xt.shape_of(op.results[0])[-2] - 1 + p.columns - xt.shape_of(x)[-2] - p.low)
    rest = {k: v for k, v in vars(a).items() if k not in ("low", "high", "strides")}
    return xt.convolution(x, w, low=(*a.low[:-1], p.low), high=high, strides=strides, **rest)

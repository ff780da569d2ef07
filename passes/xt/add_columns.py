"""The columns of windows are added into an image one spatial dim after the other, in whole rows.

    %y = xt.col2im(%x) {block = [4], strides = [2]} : 1x(8*4)x20 -> 1x8x42
becomes, since tap i of window o is added at 2 * o + i, phase i mod 2 of place o + i div 2:
    %t = xt.reshape(%x) : 1x8x2x2x20                            tap 2 * u + r at [u, r]
    %p = pad(%t[u = 0], behind) + pad(%t[u = 1], before)        : 1x8x2x21, phases r before places
    %y = xt.reshape(xt.transpose(%p)) : 1x8x42
"""

from __future__ import annotations

import functools
import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose.build import take, widened
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, floordiv


@register_pass
class AddColumns(Pass):
    """Turns col2im into sums of padded slices."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"col2im": _added})


def _added(op: Operation) -> Value:
    a, x = xt.attrs_of(op), op.operands[0]
    outs = [floordiv(n + lo + hi - ((b - 1) * d + 1), s) + 1 for n, lo, hi, b, d, s in
            zip(a.image, a.low, a.high, a.block, a.dilations, a.strides, strict=True)]
    batch, columns, _ = xt.shape_of(x)

    def summed(x: Value) -> Value:
        y = xt.reshape(x, shape=(batch, floordiv(columns, math.prod(a.block)), *a.block, *outs))
        for stride, dilation, size, low in zip(a.strides, a.dilations, a.image, a.low, strict=True):
            y = _along(y, 2 + len(outs), stride, dilation, size, low)
        return y

    return widened(summed, x)


def _along(x: Value, at: int, stride: int, dilation: int, size: Dim, low: int) -> Value:
    """The sums over the taps, dim 2 of `x`, of the windows of dim `at`: a dim of `size`, which is dim at - 1 then."""
    x, taps = _whole_phases(x, stride, dilation)
    windows = xt.shape_of(x)[at + 1]
    more: Dim = int(stride > 1)     # a place for what no window covers
    if isinstance(windows, int) and isinstance(size, int):
        more = max(0, -(-(low + size) // stride) - (windows + taps - 1))
    parts = [_padded(_cut(x, 2, u, u + 1), at + 1, u, taps - 1 - u + more) for u in range(taps)]
    total = functools.reduce(xt.add, parts)
    batch, channels, _, _, *rest = xt.shape_of(total)
    places = at - 3                 # of `rest`
    order = [d for d in range(len(rest) + 3) if d != 2]     # phases, dim 2, go behind places
    order.insert(places + 3, 2)
    total = xt.transpose(xt.reshape(total, shape=(batch, channels, stride, *rest)), perm=order) \
        if stride > 1 else total
    flat = [n * stride if d == places else n for d, n in enumerate(rest)]
    return _cut(xt.reshape(total, shape=(batch, channels, *flat)), at - 1, low, size + low)


def _whole_phases(x: Value, stride: int, dilation: int) -> tuple[Value, int]:
    """`x` with dim 2, tap i of a window, as two, (i div stride, i mod stride), and the size of the first of them."""
    batch, channels, taps, *rest = xt.shape_of(x)
    assert isinstance(taps, int)
    reach = (taps - 1) * dilation + 1
    whole = -(-reach // stride)
    zeros = [0] * (len(rest) + 3)
    if (dilation, reach) != (1, whole * stride):
        x = xt.pad(x, low=zeros, high=[0, 0, whole * stride - reach, *zeros[3:]],
                   interior=[0, 0, dilation - 1, *zeros[3:]])
    return xt.reshape(x, shape=(batch, channels, whole, stride, *rest)), whole


def _padded(x: Value, at: int, low: int, high: Dim) -> Value:
    sides = [[side if d == at else 0 for d in range(len(xt.shape_of(x)))] for side in (low, high)]
    return xt.pad(x, low=sides[0], high=sides[1]) if low or high else x


def _cut(x: Value, at: int, first: Dim, end: Dim) -> Value:
    return x if (first, end) == (0, xt.shape_of(x)[at]) else take(x, at, first, end)

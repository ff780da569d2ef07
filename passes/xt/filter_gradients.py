"""Convolutions by transposed images, as those that give a filter's gradient, read the images as they lie.

    %a = xt.transpose(%x) {perm = [3, 1, 2, 0]} : 32x56x56x64 -> 64x56x56x32
    %b = xt.transpose(%g) {perm = [1, 2, 0, 3]} : 32x56x56x128 -> 56x56x32x128
    %y = xt.convolution(%a, %b) {layout = "NHWC", filter = "HWIO"} : -> 64x3x3x128
becomes
    %z = xt.convolution(%x, %g) {layout = "CHWN", filter = "GIHWO"} : -> 128x3x3x64
    %y = xt.transpose(%z) {perm = [3, 1, 2, 0]}

The sum is over all pixels of all images: a matrix product, both of whose operands lie along its rows and columns.
Pixels of a few channels are padded to a word.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import producer, rewrite

WORD = 8        # bytes of a pixel of few channels, which are copied together
FEW = 4         # such channels


@register_pass
class FilterGradients(Pass):
    """Gives convolutions of two transposed images the layout in which these lie."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": lambda op: _as_they_lie(op) if _of_images(op) else None})


def _of_images(op: Operation) -> bool:
    """Whether the channels that are summed over are a batch: the first dim of what was transposed."""
    a = xt.attrs_of(op)
    n = len(a.strides)
    summed = [xt.attrs_of(made).perm[d] for made, d in
              ((producer(op.operands[0], "transpose"), n + 1), (producer(op.operands[1], "transpose"), n)) if made]
    return (a.layout, a.filter, a.groups) == ("NHWC", "HWIO", 1) and summed == [0, 0]


def _as_they_lie(op: Operation) -> Value:
    a = xt.attrs_of(op)
    n = len(a.strides)
    swapped = (n + 1, *range(1, n + 1), 0)
    rest = {k: v for k, v in vars(a).items() if k not in ("layout", "filter")}
    x = xt.transpose(op.operands[0], perm=swapped)      # xt-simplify joins transposes
    w = xt.transpose(op.operands[1], perm=(n, *range(n), n + 1))
    channels = xt.shape_of(x)[-1]
    more = -channels % (WORD * 8 // xt.width(a.dtype)) if isinstance(channels, int) and channels < FEW else 0
    x = xt.pad(x, low=(0,) * (n + 2), high=(*(0,) * (n + 1), more)) if more else x
    y = xt.convolution(x, w, layout="CHWN", filter="GIHWO", **rest)
    if more:
        whole = xt.shape_of(y)
        y = xt.slice(y, starts=(0,) * (n + 2), limits=(*whole[:-1], channels), strides=(1,) * (n + 2))
    return xt.transpose(y, perm=swapped)

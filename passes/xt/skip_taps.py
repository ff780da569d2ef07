"""Dilated convolutions whose taps often lie in the padding become a product for each tap, of what it reads.

With dilation 24 a tap at the border of a 3x3 filter reads the padding for 24 of 32 rows of an image. A convolution
multiplies these zeros, of which an image with a border of 24 around is six parts in seven; a product for each tap
reads what lies in the image, and the products are added where they belong. Of the image's size the taps' part that is
left follows, and what it costs to read and write more arrays.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import dtype_of
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, dim_min

IMAGE = 32      # a dim of an image whose size only a run tells, where nominal sizes make it smaller
WORTH = 0.8     # of the time of the convolution as it is
MOVED = 33.0    # what an input or output costs that is written and read once more, from a cache, in multiplications


@register_pass
class SkipTaps(Pass):
    """Rewrites NHWC convolutions of one group, with stride 1, whose result is as large as the image.

    Before: ``xt.convolution(x, w) {rhs_dilation = [24, 24], low = [24, 24], high = [24, 24]}``, w: [3, 3, I, O]
    After:  the sum over i, j of ``xt.pad(xt.dot_general(xt.slice(x), xt.slice(w)))``, each of the part of the image
            that tap (i, j) reads, in the place of the results that read it
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": lambda op: _sum_of_taps(op) if _fits(op) and _share(op) < WORTH else None})


def _fits(op: Operation) -> bool:
    a, w = xt.attrs_of(op), xt.shape_of(op.operands[1])
    if (a.layout, a.filter, a.groups) != ("NHWC", "HWIO", 1) or not xt.is_float(a.dtype):
        return False
    sizes = (*w, *a.low, *a.high)
    if not all(isinstance(d, int) and d >= 0 for d in sizes) or any(d != 1 for d in (*a.strides, *a.lhs_dilation)):
        return False
    return all(low + high == (taps - 1) * dilation
               for low, high, taps, dilation in zip(a.low, a.high, w, a.rhs_dilation, strict=False))


def _shifts(op: Operation) -> list[list[int]]:
    """For each dim of the image, how far behind a result's place each tap reads."""
    a = xt.attrs_of(op)
    return [[n * dilation - low for n in range(taps)]
            for taps, dilation, low in zip(_filter(op), a.rhs_dilation, a.low, strict=False)]


def _filter(op: Operation) -> list[int]:
    """Its taps along each dim, inputs and outputs, which are numbers."""
    return [d for d in xt.shape_of(op.operands[1]) if isinstance(d, int)]


def _share(op: Operation) -> float:
    """The estimated time, as a share of the convolution's as it is."""
    *_, inputs, outputs = _filter(op)
    left = 1.0
    for size, shifts in zip(xt.shape_of(op.operands[0])[1:], _shifts(op), strict=False):
        count = size if isinstance(size, int) else max(nominal_count((size,), {}), IMAGE)
        left *= sum(max(count - abs(s), 0) for s in shifts) / (len(shifts) * max(count, 1))
    return left * (1 + MOVED * (1 / inputs + 1 / outputs)) if inputs and outputs else math.inf


def _sum_of_taps(op: Operation) -> Value:
    """Sums of narrow floats are formed in f32."""
    a, size = xt.attrs_of(op), xt.shape_of(op.operands[0])[1:-1]
    places = itertools.product(*(list(enumerate(along)) for along in _shifts(op)))
    taps = [_Tap(tuple(n for n, _ in place), *zip(*(_cut(d, s) for d, (_, s) in zip(size, place, strict=True)),
                                                  strict=True)) for place in places]
    parts = [tap.part(op) for tap in [tap for tap in taps if not tap.is_empty(size)] or taps[:1]]
    total = functools.reduce(xt.add, parts)
    return xt.convert(total, dtype=a.dtype) if dtype_of(total) != a.dtype else total


@dataclass(frozen=True)
class _Tap:
    """A tap of the filter, and how much of each dim of the image lies before and behind what it reads."""

    place: tuple[int, ...]
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]

    def is_empty(self, size: Sequence[Dim]) -> bool:
        """Whether it reads nothing but padding."""
        return any(d in (low, high) for low, high, d in zip(self.low, self.high, size, strict=True))

    def part(self, op: Operation) -> Value:
        """What it adds, a whole image."""
        x, w = op.operands
        batch, *size, inputs = xt.shape_of(x)
        outputs, a = xt.shape_of(w)[-1], xt.attrs_of(op)
        read = xt.slice(x, starts=(0, *self.low, 0), limits=(
            batch, *(d - high for d, high in zip(size, self.high, strict=True)), inputs))
        tap = xt.slice(w, starts=(*self.place, 0, 0), limits=(*(n + 1 for n in self.place), inputs, outputs))
        product = xt.dot_general(read, xt.reshape(tap, shape=(inputs, outputs)), lhs_contract=(len(size) + 1,),
                                 rhs_contract=(0,), dtype="f32" if a.dtype in ("f16", "bf16") else a.dtype,
                                 precision=a.precision)
        return xt.pad(product, low=(0, *self.high, 0), high=(0, *self.low, 0))


def _cut(size: Dim, shift: int) -> tuple[Dim, Dim]:
    """How much a tap that reads `shift` behind a result's place leaves out at the image's begin and end."""
    most = dim_min(abs(shift), size)
    return (most, 0) if shift > 0 else (0, most)

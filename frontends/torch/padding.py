"""Padding and cropping."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import numpy_dtype
from xcc.frontends.shared.helpers import element, full, slice_axis
from xcc.frontends.torch.context import Context, Shape
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _sides(cx: Context, pads: Shape) -> tuple[Shape, Shape]:
    """Pads come in pairs from the last dim on."""
    rank = cx.rank()
    low: list[Dim] = [0] * rank
    high: list[Dim] = [0] * rank
    for n in range(len(pads) // 2):
        low[rank - 1 - n], high[rank - 1 - n] = pads[2 * n], pads[2 * n + 1]
    return tuple(low), tuple(high)


@aten("constant_pad_nd")
def constant_pad(cx: Context) -> Value:
    return _constant(cx, *_sides(cx, cx.dims("pad")), cx.get("value", 0))


@aten("pad")
def pad(cx: Context) -> Value:
    """Padding of any mode."""
    low, high = _sides(cx, cx.dims("pad"))
    if cx["mode"] == "constant":
        return _constant(cx, low, high, cx.get("value", 0))
    return _sampled(cx.tensor("self"), low, high, _MODES[cx["mode"]])


@aten(*(f"reflection_pad{n}d" for n in (1, 2, 3)), *(f"replication_pad{n}d" for n in (1, 2, 3)))
def border_pad(cx: Context) -> Value:
    low, high = _sides(cx, cx.dims("padding"))
    return _sampled(cx.tensor("self"), low, high, "reflect" if "reflection" in cx.node.op else "edge")


def _constant(cx: Context, low: Shape, high: Shape, value: Any) -> Value:
    x = cx.tensor("self")
    if all(d == 0 for d in (*low, *high)):
        return x
    kind = element(x)
    plain = isinstance(value, int | float) and float(numpy_dtype(kind).type(value)) == value and abs(value) <= 1 << 53
    if plain or value != value:
        return xt.pad(x, low=low, high=high, value=float(value))
    inside = xt.pad(full(xt.shape_of(x), True, "i1"), low=low, high=high)
    return xt.select(inside, xt.pad(x, low=low, high=high), cx.value_of(value, kind))


def _sampled(x: Value, low: Shape, high: Shape, mode: str) -> Value:
    """Padding by elements of x; crops first, what is cut off is not read, but where that would leave nothing."""
    def padded(x: Value) -> Value:
        low_, high_ = (tuple(0 if isinstance(d, int) and d < 0 else d for d in side) for side in (low, high))
        return xt.pad(x, low=low_, high=high_, mode=mode) if any(d != 0 for d in (*low_, *high_)) else x

    def cropped(x: Value) -> Value:
        for axis, (first, last) in enumerate(cuts):
            if first or last:
                x = slice_axis(x, axis, first, xt.shape_of(x)[axis] - last)
        return x

    cuts = [tuple(-d if isinstance(d, int) and d < 0 else 0 for d in pair) for pair in zip(low, high, strict=True)]
    leaves = all(not isinstance(n, int) or n > sum(cut) or not any(cut)
                 for n, cut in zip(xt.shape_of(x), cuts, strict=True))
    return padded(cropped(x)) if leaves else cropped(padded(x))

"""Padding of convolutions and pools: auto_pad, pads, ceil_mode."""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc.bounds import Bounds, interval
from xcc.frontends.onnx.context import Context, Shape
from xcc.symbolic import Dim


@dataclass(frozen=True)
class Window:
    """The window attributes of a node, an entry per spatial dim."""

    kernel: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: Shape
    high: Shape


def window_of(cx: Context, spatial: Shape, kernel: Shape) -> Window:
    """The window of a Conv or a pool over `spatial`."""
    n = len(kernel)
    if len(spatial) != n:
        cx.misfit(f"a window of {n} dims for {len(spatial)} spatial dims")
    strides = tuple(cx.attr("strides", [1] * n))
    dilations = tuple(cx.attr("dilations", [1] * n))
    if len(strides) != n or len(dilations) != n:
        cx.misfit(f"strides {list(strides)} or dilations {list(dilations)} do not fit {n} spatial dims")
    if min((*strides, *dilations), default=1) < 1:
        cx.misfit(f"strides {list(strides)} and dilations {list(dilations)} must be 1 or more")
    auto = cx.attr("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        low, high = _same(spatial, kernel, strides, dilations, auto == "SAME_UPPER")
    elif auto == "VALID":
        low = high = (0,) * n
    else:
        pads = cx.attr("pads", [0] * 2 * n)
        if len(pads) != 2 * n:
            cx.misfit(f"{len(pads)} pads for {n} spatial dims")
        low, high = tuple(pads[:n]), tuple(pads[n:])
    return Window(kernel, strides, dilations, low, high)


def _same(spatial: Shape, kernel: Shape, strides: tuple[int, ...], dilations: tuple[int, ...],
          upper: bool) -> tuple[Shape, Shape]:
    low: list[Dim] = []
    high: list[Dim] = []
    for n, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = symbolic.dim_max((symbolic.ceildiv(n, s) - 1) * s + (k - 1) * d + 1 - n, 0)
        small = symbolic.floordiv(total, 2)
        low.append(small if upper else total - small)
        high.append(total - small if upper else small)
    return tuple(low), tuple(high)


def pool_padding(cx: Context, spatial: Shape, w: Window) -> Shape:
    """`high` of a pool, grown so that the windows fit which ONNX counts and which would not."""
    grow = _ceil_high if cx.attr("ceil_mode", 0) else _floor_high
    bounds = cx.graph.model.known
    return tuple(grow(bounds, *row) for row in
                 zip(spatial, w.kernel, w.strides, w.dilations, w.low, w.high, strict=True))


def _ceil_high(_bounds: Bounds, n: Dim, k: Dim, s: int, d: int, low: Dim, high: Dim) -> Dim:
    """ceil_mode's last window fits; one that would start in the high padding is left out."""
    span = (k - 1) * d + 1
    count = symbolic.ceildiv(n + low + high - span, s) + 1
    starts_inside = symbolic.floordiv(n + low - 1, s) + 1
    count = symbolic.dim_min(count, starts_inside)
    return (count - 1) * s + span - n - low


def _floor_high(bounds: Bounds, n: Dim, k: Dim, s: int, d: int, low: Dim, high: Dim) -> Dim:
    """One window stays when less than a stride is missing to it.

    ONNX counts windows as (padded - span) / stride + 1, and its shape inference and onnxruntime round that quotient
    towards zero: a window of 2 with stride 2 over a size of 1 gives one result, that of the single element.
    """
    padded, span = n + low + high, (k - 1) * d + 1
    most = interval(bounds, span - padded)[1]
    if s == 1 or most <= 0:
        return high
    total = symbolic.dim_max(padded, span)
    if most >= s:
        total = symbolic.dim_min(total, padded + (s - 1))
    return total - n - low

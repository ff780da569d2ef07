"""Padding of convolutions and pools: auto_pad, pads, ceil_mode."""

from __future__ import annotations

from xcc import symbolic
from xcc.bounds import Bounds, interval
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.shared.windows import Window, ceil_high, same_pads
from xcc.symbolic import Dim


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
        low, high = same_pads(spatial, kernel, strides, dilations, auto == "SAME_UPPER")
    elif auto == "VALID":
        low = high = (0,) * n
    else:
        pads = cx.attr("pads", [0] * 2 * n)
        if len(pads) != 2 * n:
            cx.misfit(f"{len(pads)} pads for {n} spatial dims")
        low, high = tuple(pads[:n]), tuple(pads[n:])
    return Window(kernel, strides, dilations, low, high)


def pool_padding(cx: Context, spatial: Shape, w: Window) -> Shape:
    """`high` of a pool, grown so that the windows fit which ONNX counts and which would not."""
    if cx.attr("ceil_mode", 0):
        return ceil_high(spatial, w)
    bounds = cx.graph.model.known
    return tuple(_floor_high(bounds, *row) for row in
                 zip(spatial, w.kernel, w.strides, w.dilations, w.low, w.high, strict=True))


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

"""Pools over windows."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element, full, scalar
from xcc.frontends.shared.windows import Shape, Window


def pool(x: Value, kind: str, w: Window, high: Shape | None = None) -> Value:
    """The windows of x [N, C, spatial...] reduced; `high` is padding that is no part of the window's own."""
    return xt.reduce_window(x, kind=kind, window=(1, 1, *w.kernel), strides=(1, 1, *w.strides), low=(0, 0, *w.low),
                            high=(0, 0, *(w.high if high is None else high)), dilations=(1, 1, *w.dilations))


def average(x: Value, w: Window, high: Shape, count_pads: bool) -> Value:
    """Sums over counts; the window's own padding counts with `count_pads`, what `high` has more never does."""
    return xt.div(pool(x, "sum", w, high), window_count(x, w, high, count_pads))


def window_count(x: Value, w: Window, high: Shape, count_pads: bool) -> Value:
    """By how much :func:`average` divides: a number, or a tensor [1, 1, windows...]."""
    if all(d == 0 for d in (*w.low, *high)):
        size = 1
        for k in w.kernel:
            size *= int(k)  # type: ignore[arg-type]
        return scalar(size, x)
    spatial = xt.shape_of(x)[2:]
    ones = full((1, 1, *spatial), 1, element(x))
    if not count_pads:
        return pool(ones, "sum", w, high)
    ones = xt.pad(ones, low=(0, 0, *w.low), high=(0, 0, *w.high), value=1.0)
    rest = tuple(h - p for h, p in zip(high, w.high, strict=True))
    return pool(ones, "sum", Window(w.kernel, w.strides, w.dilations, (0,) * len(spatial), rest))

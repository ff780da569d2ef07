"""resize as one gather of taps a dim and a weighted sum; nearest is a gather alone."""

from __future__ import annotations

from typing import Any

from xcc.dialects import xt
from xcc.dialects.xt.resize import resized, taps
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import column, const, convert, dim_scalar, dtype, shape
from xcc.symbolic import Dim


@decomposes("resize")
def resize(a: Any, x: Any) -> Any:
    """Each dim that changes in turn. None for symbolic dims in a mode without index arithmetic here."""
    plan: list[tuple[int, Any, Any]] = []
    wide = "f64" if dtype(x) == "f64" else "f32"
    outside = None
    for d, (size, out) in enumerate(zip(shape(x), a.shape, strict=True)):
        if isinstance(size, int) and isinstance(out, int):
            if not resized(a, d, size, out):
                continue
            index, weights, off = taps(a, d, size, out)
            plan.append((d, xt.constant(index, "i64"), xt.constant(weights, wide)))
            if off.any():
                mark = column(xt.constant(off), d, len(a.shape))
                outside = mark if outside is None else xt.or_(outside, mark)
        elif size != out or a.scales[d] not in (0.0, 1.0):
            rows = _symbolic_taps(a, d, size, out, wide)
            if rows is None:
                return None
            plan.append((d, *rows))
    y = _apply(a, x, plan)
    if outside is not None:
        y = xt.select(outside, xt.convert(const(a.extrapolation, y), dtype=dtype(y)), y)
    return y


def _apply(a: Any, x: Any, plan: list[tuple[int, Any, Any]]) -> Any:
    if a.mode == "nearest":
        for d, index, _ in plan:
            x = xt.gather(x, xt.reshape(index, shape=shape(index)[:1]), axis=d)
        return x
    y = convert(x, "f64" if dtype(x) == "f64" else "f32")
    for d, index, weights in plan:
        rank = len(shape(y))
        picked = xt.gather(y, index, axis=d)
        factors = xt.reshape(weights, shape=[1] * d + list(shape(index)) + [1] * (rank - d - 1))
        y = xt.reduce(xt.mul(picked, factors), kind="sum", axes=(d + 1,))
    return convert(y if xt.is_float(dtype(x)) else xt.round_(y), dtype(x))


def _symbolic_taps(a: Any, d: int, size: Dim, out: Dim, wide: str) -> tuple[Any, Any] | None:
    """Indices [out, taps] and weights for nearest and linear, computed from the sizes at run time."""
    if a.mode == "cubic" or a.antialias or a.coordinate in ("tf_crop_and_resize", "half_pixel_symmetric"):
        return None
    y = xt.iota(shape=(out, 1), axis=0, dtype=wide)
    half = const(0.5, y)
    n, m = dim_scalar(size, wide), dim_scalar(out, wide)
    if a.coordinate == "align_corners":
        span = xt.maximum(xt.sub(m, const(1.0, m)), const(1.0, m))
        x = xt.mul(y, xt.div(xt.sub(n, const(1.0, n)), span))
    else:
        scale = const(1 / a.scales[d], y) if a.scales[d] else xt.div(n, m)
        x = xt.mul(y, scale) if a.coordinate == "asymmetric" else xt.sub(xt.mul(xt.add(y, half), scale), half)
    top = xt.sub(n, const(1.0, n))
    if a.mode == "nearest":
        ceil, floor = xt.ceil, xt.floor
        place = {"floor": floor, "ceil": ceil, "round_prefer_floor": lambda v: ceil(xt.sub(v, half)),
                 "round_prefer_ceil": lambda v: floor(xt.add(v, half))}[a.nearest_mode](x)
        return xt.convert(_clamp(place, top), dtype="i64"), None
    left = xt.floor(x)
    right = xt.sub(x, left)
    ends = [_clamp(left, top), _clamp(xt.add(left, const(1.0, left)), top)]
    index = xt.convert(xt.concatenate(*ends, axis=1), dtype="i64")
    return index, xt.concatenate(xt.sub(const(1.0, right), right), right, axis=1)


def _clamp(x: Any, top: Any) -> Any:
    return xt.minimum(xt.maximum(x, const(0.0, x)), top)



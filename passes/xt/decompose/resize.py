"""resize as one gather of taps a dim and a weighted sum; nearest is a gather alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.resize import resized, scale_of, symbolic_form, tap_offsets, taps
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import column, const, convert, dim_scalar, drop, dtype, shape, take
from xcc.symbolic import Dim

FEW_TAPS = 4        # of linear and cubic resizes that do not shrink


@decomposes("resize")
def resize(a: Attrs, x: Value) -> Value | None:
    """Each dim that changes in turn. None where a region of symbolic dims is cropped (``symbolic_form``)."""
    plan: list[tuple[int, Value, Any]] = []
    wide = "f64" if dtype(x) == "f64" else "f32"
    outside = None
    for d, (size, out) in enumerate(zip(shape(x), a.shape, strict=True)):
        if not resized(a, d, size, out):
            continue
        if isinstance(size, int) and isinstance(out, int):
            index, weights, off = taps(a, d, size, out)
            plan.append((d, xt.constant(index.T, "i64"), xt.constant(weights.T, wide)))
            if off.any():
                mark = column(xt.constant(off), d, len(a.shape))
                outside = mark if outside is None else xt.or_(outside, mark)
        else:
            rows = _symbolic_taps(a, d, size, out, wide)
            if rows is None:
                return None
            plan.append((d, *rows))
    y = _apply(a, x, plan)
    if outside is not None:
        y = xt.select(outside, xt.convert(const(a.extrapolation, y), dtype=dtype(y)), y)
    return y


def _apply(a: Attrs, x: Value, plan: list[tuple[int, Value, Any]]) -> Value:
    if a.mode == "nearest":
        for d, index, _ in plan:
            x = xt.gather(x, xt.reshape(index, shape=shape(index)[1:]), axis=d)
        return x
    y = convert(x, "f64" if dtype(x) == "f64" else "f32")
    for d, index, weights in plan:
        y = _weighted(y, d, index, weights)
    return convert(y if xt.is_float(dtype(x)) else xt.round_(y), dtype(x))


def _weighted(y: Value, d: int, index: Value, weights: Value) -> Value:
    """The sum of the elements of `y` at the places [taps, out] of dim d, times their weights.

    A sum of a few terms has no room for vectors, the results have: these lie along the last dim, also where it is the
    one that is resized. Few taps are gathers of their own.
    """
    rank, taps = len(shape(y)), shape(index)[0]
    if isinstance(taps, int) and taps <= FEW_TAPS:
        of = [[drop(take(v, 0, t, t + 1), 0) for v in (index, weights)] for t in range(taps)]
        return reduce(xt.add, [xt.mul(xt.gather(y, place, axis=d), column(weight, d, rank)) for place, weight in of])
    factors = xt.reshape(weights, shape=[1] * d + list(shape(index)) + [1] * (rank - d - 1))
    return xt.reduce(xt.mul(xt.gather(y, index, axis=d), factors), kind="sum", axes=(d,))


def _symbolic_taps(a: Attrs, d: int, size: Dim, out: Dim, wide: str) -> tuple[Value, Value | None] | None:
    """Indices [taps, out] and weights, computed from the sizes at run time; for nearest no weights.

    None where a region is cropped, whose place the sizes decide.
    """
    if not symbolic_form(a):
        return None
    n = dim_scalar(size, wide)
    scale = scale_of(a, d, size, out)
    x = _positions(a, scale, n, dim_scalar(out, wide), xt.iota(shape=(1, out), axis=1, dtype=wide))
    one, half = const(1.0, x), const(0.5, x)
    top = xt.sub(n, one)
    if a.mode == "nearest":
        ceil, floor = xt.ceil, xt.floor
        places: dict[str, Callable[[Value], Value]] = {
            "floor": floor, "ceil": ceil, "round_prefer_floor": lambda v: ceil(xt.sub(v, half)),
            "round_prefer_ceil": lambda v: floor(xt.add(v, half))}
        return xt.convert(_clamp(places[a.nearest_mode](x), top), dtype="i64"), None
    left = xt.floor(x)
    right = xt.sub(x, left)
    if a.mode == "linear" and not a.antialias and not a.exclude_outside:
        ends = [_clamp(left, top), _clamp(xt.add(left, one), top)]
        index = xt.convert(xt.concatenate(*ends, axis=0), dtype="i64")
        return index, xt.concatenate(xt.sub(one, right), right, axis=0)
    if a.antialias and not scale:
        offsets, shrink = _widest_taps(a, size, out, wide)
    else:
        factor = min(scale, 1.0) if a.antialias else 1.0
        offsets, shrink = xt.constant(np.array([tap_offsets(a, factor)]).T, wide), const(factor, x)
    distance = xt.abs_(xt.mul(xt.sub(offsets, right), shrink))
    weights = _triangle(distance) if a.mode == "linear" else _keys(distance, a.cubic_coeff)
    place = xt.add(left, offsets)
    inside = _clamp(place, top)
    if a.exclude_outside:
        weights = xt.select(xt.compare(place, inside, direction="eq"), weights, const(0.0, x))
    weights = xt.div(weights, xt.reduce(weights, kind="sum", axes=(0,), keepdims=True))
    return xt.convert(inside, dtype="i64"), weights


def _widest_taps(a: Attrs, size: Dim, out: Dim, wide: str) -> tuple[Value, Value]:
    """Where taps are from the left neighbour of a position on, [taps, 1], and by how much their distances shrink, where
    the sizes decide how many there are: as many as the quotient of the sizes, rounded up, asks for. What is beyond the
    filter has no weight."""
    reach = symbolic.product((1 if a.mode == "linear" else 2, symbolic.ceildiv(size, symbolic.dim_max(out, 1))))
    steps = xt.iota(shape=(reach * 2, 1), axis=0, dtype=wide)
    m, n = dim_scalar(out, wide), dim_scalar(size, wide)
    return xt.sub(steps, xt.sub(dim_scalar(reach, wide), const(1.0, steps))), xt.minimum(xt.div(m, n), const(1.0, m))


def _positions(a: Attrs, scale: float, n: Value, m: Value, y: Value) -> Value:
    """The input coordinates of the output positions y, of n to m elements; 0 for `scale` is m / n, and so is any where
    m is one of the multiples of n that go by their sizes."""
    half, one = const(0.5, y), const(1.0, y)
    factor = const(scale, n) if scale else xt.div(m, n)
    for k in range(1, a.multiples + 1 if scale else 1):
        factor = xt.select(xt.compare(m, xt.mul(n, const(float(k), n)), direction="eq"), const(float(k), n), factor)
    grown = xt.mul(n, factor) if scale else m
    single = xt.compare(m, const(2.0, m), direction="lt")
    if a.coordinate == "align_corners":
        # of a single element the position is 0, and y is: any divisor serves
        return xt.mul(y, xt.div(xt.sub(n, one), xt.select(single, one, xt.sub(grown, one))))
    if a.coordinate == "asymmetric":
        return xt.div(y, factor)
    x = xt.sub(xt.div(xt.add(y, half), factor), half)
    if a.coordinate == "half_pixel_symmetric":
        return xt.add(x, xt.mul(xt.mul(n, half), xt.sub(one, xt.div(m, grown))))
    return x if a.coordinate == "half_pixel" else xt.select(single, const(0.0, y), x)


def _triangle(distance: Value) -> Value:
    return xt.maximum(xt.sub(const(1.0, distance), distance), const(0.0, distance))


def _keys(t: Value, c: float) -> Value:
    """The cubic convolution kernel of Keys (1981) at distances `t`, by Horner's rule."""
    def polynomial(*factors: float) -> Value:
        total = const(factors[0], t)
        for f in factors[1:]:
            total = xt.add(xt.mul(total, t), const(f, t))
        return total
    far = xt.select(xt.compare(t, const(2.0, t), direction="lt"), polynomial(c, -5 * c, 8 * c, -4 * c), const(0.0, t))
    return xt.select(xt.compare(t, const(1.0, t), direction="gt"), far, polynomial(c + 2, -(c + 3), 0.0, 1.0))


def _clamp(x: Value, top: Value) -> Value:
    return xt.minimum(xt.maximum(x, const(0.0, x)), top)



"""Gradients of reads at a grid's positions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, rank_of, scalar, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

_CUBIC = -0.75


@dataclass(frozen=True)
class Tap:
    """One element that is read along an axis, an entry a position: where, its weight, and how that changes there."""

    index: Value
    weight: Value
    slope: Value


@aten("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(cx: Context) -> tuple[Value, Value]:
    """The gradient of the input, added where it was read, and that of the positions."""
    grad, x, grid = cx.tensor("grad_output"), cx.tensor("input"), cx.tensor("grid")
    n, (batch, channels, *spatial) = rank_of(x) - 2, xt.shape_of(x)
    count = symbolic.product(xt.shape_of(grad)[2:])
    flat_grad = xt.reshape(grad, shape=(batch, channels, count))
    flat = xt.reshape(x, shape=(batch, channels, symbolic.product(spatial)))
    points = xt.reshape(grid, shape=(batch, count, n))
    axes, factors = zip(*(_taps(cx, slice_axis(points, 2, n - 1 - i, n - i), size)
                          for i, size in enumerate(spatial)), strict=True)
    to_input, slopes = full(xt.shape_of(flat), 0, element(flat)), [scalar(0, flat) for _ in range(n)]
    for corner in product(*axes):
        place = _place([t.index for t in corner], spatial)
        wide = xt.broadcast(place, shape=(batch, channels, count))
        weight = reduce(xt.mul, [t.weight for t in corner])
        to_input = xt.scatter_elements(to_input, wide, xt.mul(flat_grad, weight), axis=2, reduction="add")
        read = xt.reduce(xt.mul(flat_grad, xt.gather_elements(flat, wide, axis=2)), kind="sum", axes=(1,),
                         keepdims=True)
        for d in range(n):
            change = reduce(xt.mul, [t.slope if i == d else t.weight for i, t in enumerate(corner)])
            slopes[d] = xt.add(slopes[d], xt.mul(read, change))
    parts = [xt.mul(slopes[d], factors[d]) for d in reversed(range(n))]
    to_grid = xt.transpose(xt.concatenate(*parts, axis=1), perm=(0, 2, 1))
    return xt.reshape(to_input, shape=xt.shape_of(x)), xt.reshape(to_grid, shape=xt.shape_of(grid))


def _place(indices: list[Value], spatial: list[Dim]) -> Value:
    """The element's number in the plane."""
    place = indices[0]
    for index, size in zip(indices[1:], spatial[1:], strict=True):
        place = xt.add(xt.mul(place, dim_scalar(size, "i64")), index)
    return place


def _taps(cx: Context, points: Value, size: Dim) -> tuple[list[Tap], Value]:
    """What is read along an axis by positions [batch, count, 1], as [batch, 1, count], and by how much an element's
    place changes with them."""
    align, mode = bool(cx["align_corners"]), int(cx["interpolation_mode"])
    g = xt.transpose(points, perm=(0, 2, 1))
    n, one, half = dim_scalar(size, element(g)), scalar(1, g), scalar(0.5, g)
    scale = xt.mul(xt.sub(n, one) if align else n, half)
    p = xt.mul(xt.add(g, one), scale)
    p = p if align else xt.sub(p, half)
    factor = xt.broadcast(scale, shape=xt.shape_of(p))
    if mode == 2:
        first = xt.floor(p)
        return [_tap(cx, xt.add(first, scalar(k - 1, p)), n, *_cubic(xt.sub(p, first), k))
                for k in range(4)], factor
    p, sign = _padded(cx, p, n)
    if mode == 1:
        nothing = full(xt.shape_of(p), 0, element(p))
        return [_inside(xt.round(p), n, full(xt.shape_of(p), 1, element(p)), nothing)], factor
    first = xt.floor(p)
    t = xt.sub(p, first)
    minus, plus = (full(xt.shape_of(p), v, element(p)) for v in (-1, 1))
    return [_inside(first, n, xt.sub(one, t), minus),
            _inside(xt.add(first, one), n, t, plus)], xt.mul(factor, sign)


def _tap(cx: Context, at: Value, n: Value, weight: Value, slope: Value) -> Tap:
    return _inside(_padded(cx, at, n)[0], n, weight, slope)


def _inside(at: Value, n: Value, weight: Value, slope: Value) -> Tap:
    """A tap that counts where `at` is a place; elsewhere it reads the nearest one, of weight 0."""
    zero, last = scalar(0, at), xt.sub(n, scalar(1, at))
    here = xt.and_(xt.compare(at, zero, direction="ge"), xt.compare(at, last, direction="le"))
    index = convert(xt.minimum(xt.maximum(at, zero), last), "i64")
    return Tap(index, xt.select(here, weight, zero), xt.select(here, slope, zero))


def _padded(cx: Context, p: Value, n: Value) -> tuple[Value, Value]:
    """Places as the padding moves them, and the sign of their change, 0 where they stay at an edge."""
    kind, zero, one = int(cx["padding_mode"]), scalar(0, p), scalar(1, p)
    if kind == 0:
        return p, one
    last, sign = xt.sub(n, one), one
    if kind == 2:
        p, sign = _reflected(p, n, bool(cx["align_corners"]))
    moves = xt.and_(xt.compare(p, zero, direction="gt"), xt.compare(p, last, direction="lt"))
    return xt.minimum(xt.maximum(p, zero), last), xt.select(moves, sign, zero)


def _reflected(p: Value, n: Value, align: bool) -> tuple[Value, Value]:
    """Places thrown back at the centres of the first and last element, or at their outer edges, and the sign."""
    one, zero = scalar(1, p), scalar(0, p)
    low = scalar(0.0 if align else -0.5, p)
    span = xt.sub(n, one) if align else n
    away = xt.sub(p, low)
    far = xt.abs(away)
    safe = xt.select(xt.compare(span, zero, direction="eq"), one, span)
    turns = xt.floor(xt.div(far, safe))
    rest = xt.sub(far, xt.mul(turns, safe))
    even = xt.compare(xt.mod(turns, scalar(2, p)), zero, direction="eq")
    place = xt.add(xt.select(even, rest, xt.sub(span, rest)), low)
    side = xt.select(xt.compare(away, zero, direction="lt"), xt.neg(one), one)
    sign = xt.select(even, side, xt.neg(side))
    flat = xt.compare(span, zero, direction="eq")
    return xt.select(flat, zero, place), xt.select(flat, zero, sign)


def _cubic(t: Value, k: int) -> tuple[Value, Value]:
    """The weight of the k-th of four elements around a place t behind the second, and its derivative."""
    x = xt.sub(t, scalar(k - 1, t))
    side, d = (xt.neg(scalar(1, t)) if k > 1 else scalar(1, t)), xt.abs(x)
    a = _CUBIC
    powers = (a + 2, -(a + 3), 0.0, 1.0) if k in (1, 2) else (a, -5 * a, 8 * a, -4 * a)
    weight = reduce(lambda s, c: xt.add(xt.mul(s, d), scalar(c, d)), powers[1:], scalar(powers[0], d))
    lower = [c * e for c, e in zip(powers[:3], (3, 2, 1), strict=True)]
    slope = reduce(lambda s, c: xt.add(xt.mul(s, d), scalar(c, d)), lower[1:], scalar(lower[0], d))
    return weight, xt.mul(slope, side)

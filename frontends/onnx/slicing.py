"""Slices, whose places are known at compile time or only their sizes are; else :mod:`counted_slices`."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc._mlir import Value
from xcc.bounds import Undecided, interval, sign
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, RuntimeShape, Shape
from xcc.frontends.onnx.counted_slices import counted_slice
from xcc.frontends.onnx.ratio import is_negative
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, scalar
from xcc.symbolic import Dim

__all__ = ["at_least"]

_FAR = 1 << 30      # ends from here on mean all that there is


@onnx_op("Slice")
def slice_attributes(cx: Context) -> Value:
    starts = cx.attr("starts")
    return _slice(cx, starts, cx.attr("ends"), cx.attr("axes", range(len(starts))), [1] * len(starts))


@onnx_op("Slice", since=10)
def slice_operands(cx: Context) -> Value:
    """output = Slice(data, starts, ends, axes?, steps?)."""
    count = cx.shape(1)[0]
    if not isinstance(count, int):
        cx.fail("the number of starts is not known")
    axes = cx.static_ints(3) if cx.has(3) else tuple(range(count))
    steps = cx.static_ints(4) if cx.has(4) else (1,) * count
    sizes = cx.declared()
    if sizes is not None and any(cx.tensor(i).data is None for i in (1, 2)) and all(s == 1 for s in steps):
        return _runtime_slice(cx, axes, sizes)
    try:
        starts, ends = cx.dims(1), cx.dims(2)
    except RuntimeShape as e:
        if not cx.graph.model.may_count(e) or any(step <= 0 for step in steps):
            raise
        return counted_slice(cx, axes, steps)
    return _slice(cx, starts, ends, axes, steps)


def _slice(cx: Context, starts: Any, ends: Any, axes: Any, steps: Any) -> Value:
    x, shape = cx[0], cx.shape(0)
    low: list[Dim] = [0] * len(shape)
    high: list[Dim] = list(shape)
    strides = [1] * len(shape)
    reverse = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = cx.normal_axis(axis)
        size = shape[axis]
        if step == 0:
            cx.fail("a step of 0")
        if step > 0:
            low[axis] = _bound(cx, start, size, 0)
            high[axis] = _bound(cx, end, size, 0)
            if high[axis] != size:      # a start is not behind it
                high[axis] = at_least(cx, high[axis], low[axis])
        else:
            first = _last(cx, start, size)
            last = _bound(cx, end, size, -1)
            length = at_least(cx, first - last, 0)
            low[axis], high[axis] = first - length + 1, first + 1
            # strides count from the front, a backward walk starts at its end: align the first element kept
            kept = symbolic.ceildiv(length, -step)
            low[axis] = first - (kept - 1) * -step
            if length == 0:
                low[axis], high[axis] = 0, 0
            reverse.append(axis)
        strides[axis] = abs(step)
    out = xt.slice(x, starts=tuple(low), limits=tuple(high), strides=tuple(strides))
    return xt.reverse(out, axes=tuple(reverse)) if reverse else out


def _bound(cx: Context, at: Dim, size: Dim, before: int) -> Dim:
    """A start or end clamped into the dim. For backward walks `before` is -1: the place before the first."""
    top = size + before
    if isinstance(at, int):
        if at >= _FAR:
            return top
        if at <= -_FAR:
            return before
        if abs(at) <= 1 and (at < 0 or before == 0) and not _may_be_empty(cx, size):
            return at if at >= 0 else size - 1
        if before == 0:
            return _at_most(cx, at, size) if at >= 0 else size - _at_most(cx, -at, size)
        return _clamp(cx, at if at >= 0 else size + at, before, top)
    low, high = interval(cx.graph.model.known, at)
    if low < 0 <= high:
        return _clamp(cx, at + size * is_negative(at), before, top)
    return _clamp(cx, at if low >= 0 else size + at, before, top)


def _last(cx: Context, at: Dim, size: Dim) -> Dim:
    """Where a backward walk from `at` begins: before the first element means there; -1 where there is none."""
    if not isinstance(at, int):
        return at_least(cx, _bound(cx, at, size, -1), 0)
    if at >= 0:
        return size - 1 if at >= _FAR else _at_most(cx, at, size - 1)
    if at == -1:
        return size - 1
    return size - at_least(cx, _at_most(cx, -at, size), 1)


def _may_be_empty(cx: Context, size: Dim) -> bool:
    """Whether `size` is 0 or depends on what a run counts, which may be nothing; an input's dim has an element."""
    return size == 0 or any(s in cx.graph.model.counted for s in symbolic.symbols_of(size))


def _clamp(cx: Context, value: Dim, low: Dim, high: Dim) -> Dim:
    return _at_most(cx, at_least(cx, value, low), high)


def at_least(cx: Context, value: Dim, low: Dim) -> Dim:
    """The larger of the two, which one it is where the bounds of symbols tell."""
    try:
        s = sign(cx.graph.model.known, value - low)
    except Undecided:
        return symbolic.dim_max(value, low)
    return value if s > 0 or value == low else low


def _at_most(cx: Context, value: Dim, high: Dim) -> Dim:
    try:
        s = sign(cx.graph.model.known, high - value)
    except Undecided:
        return symbolic.dim_min(value, high)
    return value if s > 0 or value == high else high


def _runtime_slice(cx: Context, axes: tuple[int, ...], sizes: Shape) -> Value:
    """Starts known only at run time: a box of `sizes`, which the model declares."""
    starts: list[Any] = [xt.scalar(0, "i64")] * cx.rank(0)
    given = convert(cx[1], "i64")
    for i, axis in enumerate(axes):
        axis = cx.normal_axis(axis)
        start = xt.reshape(xt.slice(given, starts=(i,), limits=(i + 1,)), shape=())
        size = dim_scalar(cx.shape(0)[axis], "i64")
        starts[axis] = xt.select(xt.compare(start, scalar(0, start), direction="lt"), xt.add(start, size), start)
    return xt.dynamic_slice(cx[0], *starts, sizes=sizes)

"""Movements and reductions of values known at import: object arrays of ints, Exprs and Ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.bounds import Undecided
from xcc.frontends.onnx.context import Array, Context
from xcc.frontends.onnx.ratio import Ratio, add, multiply
from xcc.frontends.onnx.shape_arithmetic import Rule
from xcc.symbolic import Expr

__all__ = ["MOVEMENT"]


def _gather(cx: Context, xs: list[Array]) -> Array:
    return np.asarray(np.take(xs[0], _ints(xs[1]), axis=cx.axis()), object)


def _slice(cx: Context, xs: list[Array]) -> Array:
    x = xs[0]
    if cx.opset < 10:
        starts, ends, axes = cx.attr("starts"), cx.attr("ends"), cx.attr("axes")
        steps = None
    else:
        starts, ends = _ints(xs[1]).tolist(), _ints(xs[2]).tolist()
        axes = _ints(xs[3]).tolist() if cx.has(3) else None
        steps = _ints(xs[4]).tolist() if cx.has(4) else None
    index = [slice(None)] * x.ndim
    axes, steps = axes or range(len(starts)), steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:
            start = max(start, -x.shape[axis])      # a start before the first element means the first, unlike numpy's
            end = None if end < -x.shape[axis] else end
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _concat(cx: Context, xs: list[Array]) -> Array:
    return np.concatenate(xs, axis=cx.attr("axis", 1))


def _unsqueeze(cx: Context, xs: list[Array]) -> Array:
    axes = cx.attr("axes") if cx.opset < 13 else _ints(xs[1]).tolist()
    rank = xs[0].ndim + len(axes)
    out = xs[0]
    for axis in sorted(a % rank for a in axes):
        out = np.expand_dims(out, axis)
    return out


def _squeeze(cx: Context, xs: list[Array]) -> Array:
    axes = cx.attr("axes") if cx.opset < 13 else (_ints(xs[1]).tolist() if cx.has(1) else None)
    return np.squeeze(xs[0], axis=None if axes is None else tuple(axes))


def _reshape(cx: Context, xs: list[Array]) -> Array:
    shape = _ints(xs[1]).tolist()
    if not cx.attr("allowzero", 0):
        shape = [xs[0].shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return xs[0].reshape(shape)


def _flatten(cx: Context, xs: list[Array]) -> Array:
    axis = cx.axis(default=1)
    return xs[0].reshape(int(np.prod(xs[0].shape[:axis])), -1)


def _expand(cx: Context, xs: list[Array]) -> Array:
    return np.broadcast_to(xs[0], np.broadcast_shapes(xs[0].shape, tuple(_ints(xs[1]).tolist())))


def _transpose(cx: Context, xs: list[Array]) -> Array:
    return np.transpose(xs[0], cx.attr("perm"))


def _tile(cx: Context, xs: list[Array]) -> Array:
    return np.tile(xs[0], _ints(xs[1]).tolist())


def _split(cx: Context, xs: list[Array]) -> tuple[Array, ...]:
    axis, count = cx.axis(), len(cx.node.output)
    sizes = cx.attr("split") if cx.opset < 13 else (_ints(xs[1]).tolist() if cx.has(1) else None)
    if sizes is None:
        each = -(-xs[0].shape[axis] // count)
        sizes = [min(each, xs[0].shape[axis] - i * each) for i in range(count)]
    return tuple(np.split(xs[0], np.cumsum(sizes)[:-1], axis=axis))


def _reduce(cx: Context, xs: list[Array]) -> Array:
    functions: dict[str, Callable[[Any, Any], Any]] = {"ReduceProd": multiply, "ReduceSum": add,
                                                       "ReduceMax": symbolic.dim_max, "ReduceMin": symbolic.dim_min}
    function, x = functions[cx.op], xs[0]
    if x.ndim != 1 or x.size == 0:
        raise Undecided
    axes = _ints(xs[1]).tolist() if cx.has(1) else cx.attr("axes")
    if not axes and cx.attr("noop_with_empty_axes", 0):
        return x
    total = x[0]
    for value in x[1:]:
        total = function(total, value)
    out = np.empty((1,) if cx.attr("keepdims", 1) else (), object)
    out[...] = total
    return out


def _ints(x: Array) -> Array:
    """Indices must be plain numbers."""
    if any(isinstance(v, Expr | Ratio) for v in x.flat):
        raise Undecided
    return np.array(x.tolist(), np.int64)


MOVEMENT: dict[str, Rule] = {
    "Gather": _gather, "Slice": _slice, "Concat": _concat, "Unsqueeze": _unsqueeze, "Squeeze": _squeeze,
    "Reshape": _reshape, "Flatten": _flatten, "Expand": _expand, "Transpose": _transpose, "Tile": _tile,
    "Split": _split, "ReduceProd": _reduce, "ReduceSum": _reduce, "ReduceMax": _reduce, "ReduceMin": _reduce,
}

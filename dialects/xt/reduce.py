"""Reductions over axes and over windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc.dialects.xt.broadcasting import window_size
from xcc.dialects.xt.elementary import logaddexp
from xcc.dialects.xt.fields import axes, axis, boolean, dims, integer, operand, per_dim, text
from xcc.dialects.xt.numeric import NARROW, Array, highest, lowest
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.shape import Pad, static_dims
from xcc.dialects.xt.types import TensorType, dtype_name, is_float, numpy_dtype

REDUCERS: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
                            "and": np.bitwise_and, "or": np.bitwise_or}


def neutral(kind: str, dtype: str) -> float:
    """The value that does not change a reduction of `kind`."""
    if kind == "max":
        return lowest(dtype)
    if kind == "min":
        return highest(dtype)
    if kind == "and":
        return True if dtype == "i1" else -1 if dtype.startswith("i") else (1 << int(dtype[2:])) - 1
    return 1 if kind == "prod" else 0


def check_kind(kind: str, dtype: str) -> None:
    logical = kind in ("and", "or")
    if (logical and is_float(dtype)) or (dtype == "i1" and kind in ("sum", "prod")):
        raise InferError(f"kind {kind} does not take {dtype}")


def reduce_array(kind: str, x: Array, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray[Any, Any]:
    """The reduction in x's element type; narrow floats accumulate in f32. An empty one gives the neutral value."""
    dtype = dtype_name(x.dtype)
    wide = x.astype(np.float32) if dtype in NARROW else x
    start = np.array(neutral(kind, dtype)).astype(wide.dtype)
    with np.errstate(all="ignore"):
        out = REDUCERS[kind].reduce(wide, axis=axes, dtype=wide.dtype, keepdims=keepdims, initial=start)
    out = out + wide.dtype.type(0) if is_float(dtype) else out      # which of 0 and -0 is the larger differs by CPU
    return np.asarray(out).astype(x.dtype)


class Reduce(XtOp, name="reduce"):
    """sum, prod, max, min (NaN wins), and, or over `axes`, which keep a dim of 1 with `keepdims`.

    Accumulates in the element type, f16 and narrower in f32. Without `axes` all dims are reduced.
    """

    x = operand()
    kind = text(choices=tuple(REDUCERS))
    axes = axes(None)
    keepdims = boolean(False)
    access = "reduction"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        check_kind(a.kind, x.dtype)
        return x.with_shape([1 if d in a.axes else n for d, n in enumerate(x.shape) if a.keepdims or d not in a.axes])

    def evaluate(a: Attrs, x: Array) -> Array:
        return reduce_array(a.kind, x, a.axes, a.keepdims)


class ArgReduce(XtOp, name="arg_reduce"):
    """The i64 index of the largest or smallest element along `axis`; the first one, or the last with `select_last`.

    NaN counts as the largest for argmax and as the smallest for argmin.
    """

    x = operand()
    kind = text(choices=("argmax", "argmin"))
    axis = axis()
    keepdims = boolean(False)
    select_last = boolean(False)
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        shape = [1 if d == a.axis else n for d, n in enumerate(x.shape) if a.keepdims or d != a.axis]
        return TensorType(tuple(shape), "i64")

    def sampled(a: Attrs, x: TensorType) -> Sequence[int]:
        return (a.axis,)

    def evaluate(a: Attrs, x: Array) -> Array:
        wide = x.astype(np.float32) if dtype_name(x.dtype) in NARROW else x
        pick = np.argmax if a.kind == "argmax" else np.argmin
        if a.select_last:
            out = x.shape[a.axis] - 1 - pick(np.flip(wide, a.axis), a.axis, keepdims=a.keepdims)
        else:
            out = pick(wide, a.axis, keepdims=a.keepdims)
        return np.asarray(out, np.int64)


class ReduceWindow(XtOp, name="reduce_window"):
    """sum, max, min or prod of each window: result[o] = kind over i < window of x[o*stride + i*dilation - low].

    All attributes have an entry per dim of x. Elements outside x are neutral.
    """

    x = operand()
    kind = text(choices=("sum", "max", "min", "prod"))
    window = per_dim(kind=dims)
    strides = per_dim(1)
    low = per_dim(0, dims)
    high = per_dim(0, dims)
    dilations = per_dim(1)
    access = "window"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        check_kind(a.kind, x.dtype)
        rows = zip(x.shape, a.window, a.strides, a.low, a.high, a.dilations, strict=True)
        shape = [window_size(*row) for row in rows]
        for d, n in enumerate(shape):
            if isinstance(n, int) and n < 0:
                raise InferError(f"window {a.window[d]} does not fit into dim {d} of size {x.shape[d]}")
        return x.with_shape(shape)

    def evaluate(a: Attrs, x: Array) -> Array:
        views = windows(x, a, neutral(a.kind, dtype_name(x.dtype)))
        return reduce_array(a.kind, views, tuple(range(x.ndim, 2 * x.ndim)))


def windows(x: Array, a: Attrs, fill: float) -> Array:
    """[outputs..., window...] of padded x, as a view."""
    low, high, window = (static_dims(v, "window") for v in (a.low, a.high, a.window))
    padded = Pad.evaluate(Attrs(low=low, high=high, interior=(0,) * x.ndim, mode="constant",
                                value=np.array(fill).astype(x.dtype)), x)
    spans = [(w - 1) * d + 1 for w, d in zip(window, a.dilations, strict=True)]
    if any(p < s for p, s in zip(padded.shape, spans, strict=True)):
        out = [max(0, (p - s) // t + 1) for p, s, t in zip(padded.shape, spans, a.strides, strict=True)]
        return np.zeros([*out, *window], x.dtype)
    if x.ndim == 0:
        return padded
    view = np.lib.stride_tricks.sliding_window_view(padded, spans)
    index = [slice(None, None, s) for s in a.strides] + [slice(None, None, d) for d in a.dilations]
    return view[tuple(index)]


class MaxPoolWithIndices(XtOp, name="max_pool_with_indices"):
    """Max pooling of x [N, C, spatial...] and the i64 flat index into x (row-major) of each maximum, the first one.

    Attributes have an entry per spatial dim. `storage_order` 1 counts the spatial part column-major.
    """

    x = operand()
    window = per_dim(kind=dims, but=2)
    strides = per_dim(1, but=2)
    low = per_dim(0, dims, but=2)
    high = per_dim(0, dims, but=2)
    dilations = per_dim(1, but=2)
    storage_order = integer(0)
    result_names = ("values", "indices")

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, TensorType]:
        rows = zip(x.shape[2:], a.window, a.strides, a.low, a.high, a.dilations, strict=True)
        out = x.with_shape([*x.shape[:2], *(window_size(*row) for row in rows)])
        return out, out.with_dtype("i64")

    def evaluate(a: Attrs, x: Array) -> tuple[Array, Array]:
        spatial = x.shape[2:]
        flat: Any = np.arange(int(np.prod(spatial)), dtype=np.int64)
        flat = flat.reshape(spatial, order="F" if a.storage_order else "C")
        planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64) * flat.size
        position = planes.reshape(x.shape[:2] + (1,) * len(spatial)) + flat
        full = Attrs(window=(1, 1, *a.window), strides=(1, 1, *a.strides), low=(0, 0, *a.low), high=(0, 0, *a.high),
                     dilations=(1, 1, *a.dilations))
        values = windows(x, full, lowest(dtype_name(x.dtype)))
        where = windows(position, full, -1)
        taps = int(np.prod(values.shape[x.ndim:]))
        values, where = (v.reshape(*v.shape[:x.ndim], taps) for v in (values, where))
        wide = values.astype(np.float32) if dtype_name(x.dtype) in NARROW else values
        best = np.argmax(np.where(where < 0, np.array(lowest(dtype_name(x.dtype))).astype(wide.dtype), wide), -1)
        best = np.where(np.take_along_axis(where, best[..., None], -1)[..., 0] < 0, np.argmax(where >= 0, -1), best)
        pick = best[..., None]
        return np.take_along_axis(values, pick, -1)[..., 0], np.take_along_axis(where, pick, -1)[..., 0]


class Cumulative(XtOp, name="cumulative"):
    """Running sum, prod, max, min or logsumexp along `axis`; `exclusive` leaves the element itself out (the first
    is neutral), `reverse` runs from the end."""

    x = operand()
    kind = text(choices=("sum", "prod", "max", "min", "logsumexp"))
    axis = axis()
    exclusive = boolean(False)
    reverse = boolean(False)

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if a.kind == "logsumexp":
            if not is_float(x.dtype):
                raise InferError(f"kind logsumexp does not take {x.dtype}")
        else:
            check_kind(a.kind, x.dtype)
        return x

    def evaluate(a: Attrs, x: Array) -> Array:
        dtype = dtype_name(x.dtype)
        y = np.moveaxis(x.astype(np.float32) if dtype in NARROW else x, a.axis, 0)
        y = y[::-1] if a.reverse else y
        start = lowest(dtype) if a.kind == "logsumexp" else neutral(a.kind, dtype)
        with np.errstate(all="ignore"):
            if a.exclusive and y.shape[0]:
                y = np.concatenate([np.full_like(y[:1], np.array(start).astype(y.dtype)), y[:-1]])
            out = _log_sums(y) if a.kind == "logsumexp" else REDUCERS[a.kind].accumulate(y, 0, dtype=y.dtype)
        out = out[::-1] if a.reverse else out
        return np.ascontiguousarray(np.moveaxis(out, 0, a.axis)).astype(numpy_dtype(dtype))


def _log_sums(y: Array) -> Array:
    """The logarithms of the running sums of e^y along the first dim."""
    out = y.copy()
    for i in range(1, len(y)):
        out[i] = logaddexp(out[i - 1], y[i])
    return out

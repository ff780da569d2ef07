"""What scatters on GPUs are made of: who writes a place, and which updates are combined in it."""

from typing import Any

import numpy as np

from xcc.dialects.xt.broadcasting import same_dtype
from xcc.dialects.xt.fields import dims, integer, operand, text
from xcc.dialects.xt.indexing import COMBINE, check_indices, scatter_into, wrapped
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, axis_of, same_dims
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, dtype_name

HALVES = ("f16", "bf16")        # combined in f32


class LastWriters(XtOp, name="last_writers"):
    """For each place of `shape` the i32 number, along `axis`, of the last of `indices` that names it; -1 where none
    does. Indices are places along `axis`; the other dims of both are the same."""

    indices = operand()
    shape = dims()
    axis = integer(0)

    def infer(a: Attrs, indices: TensorType) -> TensorType:
        check_indices(indices)
        axis = axis_of(a.axis, indices.rank)
        if len(a.shape) != indices.rank or not all(
                same_dims(m, n) for d, (m, n) in enumerate(zip(a.shape, indices.shape, strict=True)) if d != axis):
            raise InferError(f"indices {indices} do not fit places {a.shape}")
        return TensorType(tuple(a.shape), "i32")

    def evaluate(a: Attrs, indices: Any) -> Array:
        shape = static_dims(a.shape, "shape")
        out = np.full(shape, -1, np.int32)
        at = list(np.indices(indices.shape))
        numbers = at[a.axis]
        at[a.axis] = wrapped(indices, shape[a.axis])
        np.maximum.at(out, tuple(at), numbers.astype(np.int32))
        return out


class SegmentStarts(XtOp, name="segment_starts"):
    """How many of the sorted `keys` are less than 0, 1, ... `count`, as i32: where each key's segment begins."""

    keys = operand()
    count = dims()

    def infer(a: Attrs, keys: TensorType) -> TensorType:
        check_indices(keys)
        if keys.rank != 1 or len(a.count) != 1:
            raise InferError(f"segments of {keys}")
        return TensorType((a.count[0] + 1,), "i32")

    def evaluate(a: Attrs, keys: Array) -> Array:
        (count,) = static_dims(a.count, "count")
        return np.searchsorted(keys, np.arange(count + 1)).astype(np.int32)


class CombineSegments(XtOp, name="combine_segments"):
    """x [places, n] with row p combined, in order, with the rows of `updates` [m, n] that order[starts[p]:starts[p+1]]
    names, numbers from 0 to m - 1. Dims of x may be 1: its elements are repeated. Updates of a narrow x may be f32."""

    x = operand()
    starts = operand()
    order = operand()
    updates = operand()
    reduction = text("add", tuple(COMBINE))

    def infer(a: Attrs, x: TensorType, starts: TensorType, order: TensorType, updates: TensorType) -> TensorType:
        if x.dtype not in HALVES or updates.dtype != "f32":
            same_dtype(x, updates)
        if x.rank != 2 or updates.rank != 2 or starts.rank != 1 or order.rank != 1:
            raise InferError(f"{starts} and {order} of {updates} do not fit {x}")
        shape = (starts.shape[0] - 1, updates.shape[1])
        if not all(d == 1 or same_dims(d, n) for d, n in zip(x.shape, shape, strict=True)):
            raise InferError(f"{x} is no start of {shape}")
        return TensorType(shape, x.dtype)

    def evaluate(a: Attrs, x: Array, starts: Array, order: Array, updates: Array) -> Array:
        count = len(starts) - 1
        places = np.repeat(np.arange(count), np.diff(starts))
        named = order[starts[0]:starts[-1]]

        def write(out: Array, values: Array) -> Array:
            out = np.array(np.broadcast_to(out, (count, values.shape[1])))
            COMBINE[a.reduction].at(out, places, values[named])
            return out

        return in_float(write, x, updates) if dtype_name(x.dtype) in HALVES else write(x, updates)


class CombineColumns(XtOp, name="combine_columns"):
    """x [a, places, b] with updates [a, n, b] combined, in order, at the places along dim 1 that `indices` [a, n, b]
    give; none: the last of a place stays. A workgroup of a GPU holds `held` places of `columns` in shared memory."""

    x = operand()
    indices = operand()
    updates = operand()
    reduction = text("add", ("none", *COMBINE))
    columns = integer()
    held = integer()

    def infer(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        same_dtype(x, updates)
        check_indices(indices)
        if x.rank != 3 or updates.shape != indices.shape or a.columns < 1 or a.held < 1 \
                or not all(same_dims(x.shape[d], updates.shape[d]) for d in (0, 2)):
            raise InferError(f"{updates} at {indices} do not fit {x}")
        return x

    def evaluate(a: Attrs, x: Array, indices: Any, updates: Array) -> Array:
        at = list(np.indices(indices.shape))
        at[1] = wrapped(indices, x.shape[1])
        return scatter_into(x, tuple(at), updates, a.reduction)

"""Boxes of a tensor: at places known as dims, and at places that are data."""

from collections.abc import Sequence

import numpy as np

from xcc._mlir import Value
from xcc.dialects.xt.broadcasting import same_dtype, shape_text
from xcc.dialects.xt.fields import dims, operand, per_dim, variadic
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import BUILDERS, Attrs, InferError, XtOp, build
from xcc.dialects.xt.reading import check_rank
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim, ceildiv


class Slice(XtOp, name="slice"):
    """Elements starts[i], starts[i] + strides[i], ... below limits[i] of each dim.

    Starts and limits are inside [0, dim] and limits are not below starts (converters clamp); strides are positive.
    """

    x = operand()
    starts = per_dim(kind=dims)
    limits = per_dim(kind=dims)
    strides = per_dim(1)
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        for d, (size, low, high, step) in enumerate(zip(x.shape, a.starts, a.limits, a.strides, strict=True)):
            if step < 1:
                raise InferError(f"stride {step} of dim {d} is not positive")
            bounds = [high - low, size - high, low]
            if any(isinstance(b, int) and b < 0 for b in bounds):
                raise InferError(f"[{low}:{high}] is outside dim {d} of size {size}")
        return x.with_shape([ceildiv(high - low, step)
                             for low, high, step in zip(a.starts, a.limits, a.strides, strict=True)])

    def evaluate(a: Attrs, x: Array) -> Array:
        starts, limits = static_dims(a.starts, "starts"), static_dims(a.limits, "limits")
        return x[tuple(slice(s, e, t) for s, e, t in zip(starts, limits, a.strides, strict=True))]


def _check_starts(starts: Sequence[TensorType], rank: int) -> None:
    check_rank("starts", starts, rank)
    for s in starts:
        if s.rank or s.dtype != "i64":
            raise InferError(f"a start is {s}, not an i64 scalar")


def _clamped(x: Array, starts: Sequence[Array], sizes: Sequence[int]) -> tuple[slice, ...]:
    begins = [max(0, min(int(s), n - size)) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(b, b + size) for b, size in zip(begins, sizes, strict=True))


class DynamicSlice(XtOp, name="dynamic_slice"):
    """A box of `sizes` elements from the i64 scalars `starts`, which are clamped so that the box is inside x."""

    x = operand()
    starts = variadic()
    sizes = per_dim(kind=dims)
    access = "movement"

    def infer(a: Attrs, x: TensorType, starts: Sequence[TensorType]) -> TensorType:
        _check_starts(starts, x.rank)
        if any(isinstance(n, int) and isinstance(d, int) and n > d for n, d in zip(a.sizes, x.shape, strict=True)):
            raise InferError(f"a box of {shape_text(a.sizes)} is larger than {shape_text(x.shape)}")
        return x.with_shape(a.sizes)

    def evaluate(a: Attrs, x: Array, starts: Sequence[Array]) -> Array:
        return x[_clamped(x, starts, static_dims(a.sizes, "sizes"))]


class DynamicUpdateSlice(XtOp, name="dynamic_update_slice"):
    """x with the box of update's shape at the i64 scalars `starts` (clamped) replaced by `update`."""

    x = operand()
    update = operand()
    starts = variadic()
    access = "movement"

    def infer(a: Attrs, x: TensorType, update: TensorType, starts: Sequence[TensorType]) -> TensorType:
        same_dtype(x, update)
        check_rank("update", update.shape, x.rank)
        _check_starts(starts, x.rank)
        return x

    def evaluate(a: Attrs, x: Array, update: Array, starts: Sequence[Array]) -> Array:
        out = np.array(x)
        out[_clamped(x, starts, update.shape)] = update
        return out


def dynamic_slice(x: Value, *starts: Value, sizes: Sequence[Dim]) -> Value:
    """xt.dynamic_slice with one i64 scalar a dim."""
    return build(DynamicSlice, x, starts, sizes=sizes)


def dynamic_update_slice(x: Value, update: Value, *starts: Value) -> Value:
    """xt.dynamic_update_slice with one i64 scalar a dim."""
    return build(DynamicUpdateSlice, x, update, starts)


BUILDERS.update(dynamic_slice=dynamic_slice, dynamic_update_slice=dynamic_update_slice)

"""Reads and writes at computed positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc.dialects.xt.broadcasting import same_dtype, shape_text
from xcc.dialects.xt.fields import axis, integer, operand, text
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.types import TensorType, dtype_name, is_integer

REDUCTIONS = ("none", "add", "mul", "max", "min")


def check_indices(t: TensorType) -> None:
    if not is_integer(t.dtype):
        raise InferError(f"indices are {t.dtype}, not integers")


def wrapped(indices: Array, size: int) -> Array:
    """Negative indices count from the end; then clamped into range, as compiled kernels do."""
    index = np.asarray(indices).astype(np.int64)
    index = np.where(index < 0, index + size, index)
    return np.clip(index, 0, max(size - 1, 0))


def _check_batch(count: int, x: TensorType, indices: TensorType) -> None:
    """The first `count` dims of x and indices are the same."""
    if not all(map(same_dims, x.shape[:count], indices.shape[:count])):
        raise InferError(f"the first {count} dims of {shape_text(x.shape)} and of the indices "
                         f"{shape_text(indices.shape)} differ")


def _check_box(axis: int, x: TensorType, indices: TensorType) -> None:
    """Indices reach over no dim of x but the one that they index."""
    for d, (size, used) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d != axis and isinstance(size, int) and isinstance(used, int) and used > size:
            raise InferError(f"indices {shape_text(indices.shape)} are larger than dim {d} of {shape_text(x.shape)}")


class Gather(XtOp, name="gather"):
    """x's slices at `indices` along `axis` (np.take): result dims are x[:axis], indices[batch_dims:], x[axis+1:].

    The first `batch_dims` dims of x and indices are one batch. Negative indices count from the end; the rest are
    clamped into range.
    """

    x = operand()
    indices = operand()
    axis = axis(0)
    batch_dims = integer(0)
    access = "movement"

    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        if not 0 <= a.batch_dims <= min(a.axis, indices.rank):
            raise InferError(f"batch_dims {a.batch_dims} does not fit axis {a.axis} and indices of rank {indices.rank}")
        _check_batch(a.batch_dims, x, indices)
        return x.with_shape([*x.shape[:a.axis], *indices.shape[a.batch_dims:], *x.shape[a.axis + 1:]])

    def sampled(a: Attrs, x: TensorType, indices: TensorType) -> Sequence[int]:
        return (a.axis,)

    def evaluate(a: Attrs, x: Array, indices: Array) -> Array:
        index = wrapped(indices, x.shape[a.axis])
        if not a.batch_dims:
            return np.take(x, index, a.axis)
        batch = x.shape[:a.batch_dims]
        flat = x.reshape(-1, *x.shape[a.batch_dims:])
        rows = index.reshape(flat.shape[0], *indices.shape[a.batch_dims:])
        parts = [np.take(b, i, a.axis - a.batch_dims) for b, i in zip(flat, rows, strict=True)]
        tail = (*x.shape[a.batch_dims:a.axis], *indices.shape[a.batch_dims:], *x.shape[a.axis + 1:])
        return np.stack(parts).reshape(*batch, *tail) if parts else np.zeros((*batch, *tail), x.dtype)


def _tuple_positions(x: Array, indices: Array, batch: int) -> tuple[Array, ...]:
    """Index arrays into the leading dims of x from the vectors in the last dim of indices."""
    depth = indices.shape[-1]
    outer = indices.shape[:-1]
    lead = [np.arange(outer[d]).reshape([-1 if i == d else 1 for i in range(len(outer))]) for d in range(batch)]
    rest = [wrapped(indices[..., d], x.shape[batch + d]) for d in range(depth)]
    return tuple(np.broadcast_to(i, outer) for i in (*lead, *rest))


class GatherNd(XtOp, name="gather_nd"):
    """Slices of x at the index vectors in the last dim of `indices`, after `batch_dims` common leading dims.

    Result dims: indices[:-1], x[batch_dims + vector length:].
    """

    x = operand()
    indices = operand()
    batch_dims = integer(0)
    access = "movement"

    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        depth = indices.shape[-1] if indices.rank else None
        if not isinstance(depth, int) or a.batch_dims + depth > x.rank or a.batch_dims >= indices.rank:
            raise InferError(f"index vectors of length {depth} and batch_dims {a.batch_dims} do not fit rank {x.rank}")
        _check_batch(a.batch_dims, x, indices)
        return x.with_shape([*indices.shape[:-1], *x.shape[a.batch_dims + depth:]])

    def sampled(a: Attrs, x: TensorType, indices: TensorType) -> Sequence[int]:
        depth = indices.shape[-1]
        assert isinstance(depth, int)
        return range(a.batch_dims, a.batch_dims + depth)

    def evaluate(a: Attrs, x: Array, indices: Array) -> Array:
        positions = _tuple_positions(x, indices, a.batch_dims)
        return x[positions] if positions else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))


class GatherElements(XtOp, name="gather_elements"):
    """result[i0, .., ik, ..] = x[i0, .., indices[i0, .., ik, ..], ..] with the indexed dim at `axis`."""

    x = operand()
    indices = operand()
    axis = axis(0)
    access = "movement"

    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        if indices.rank != x.rank:
            raise InferError(f"indices have rank {indices.rank}, x has {x.rank}")
        _check_box(a.axis, x, indices)
        return x.with_shape(indices.shape)

    def sampled(a: Attrs, x: TensorType, indices: TensorType) -> Sequence[int]:
        return (a.axis,)

    def evaluate(a: Attrs, x: Array, indices: Array) -> Array:
        box = x[tuple(slice(None) if d == a.axis else slice(0, n) for d, n in enumerate(indices.shape))]
        return np.take_along_axis(box, wrapped(indices, x.shape[a.axis]), a.axis)


COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_into(x: Array, positions: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """A copy of x with updates written; the last one wins, or all are combined."""

    def write(out: Array, values: Array) -> Array:
        out = np.array(out)
        if reduction == "none":
            out[positions] = values
        else:
            COMBINE[reduction].at(out, positions, values)
        return out

    if reduction != "none" and dtype_name(x.dtype) in ("f16", "bf16"):
        return in_float(write, x, updates)
    return write(x, updates)


class ScatterElements(XtOp, name="scatter_elements"):
    """x with updates[i..] stored (or combined by `reduction`) at [.., indices[i..], ..] along `axis`.

    Indices have updates' shape, or 1 in other dims than `axis`: one index for all of a row. With "none" and equal
    positions the last one wins.
    """

    x = operand()
    indices = operand()
    updates = operand()
    axis = axis(0)
    reduction = text("none", REDUCTIONS)

    def infer(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        check_indices(indices)
        same_dtype(x, updates)
        if not x.rank == indices.rank == updates.rank or not all(
                (i == 1 and d != a.axis) or same_dims(i, u)
                for d, (i, u) in enumerate(zip(indices.shape, updates.shape, strict=True))):
            raise InferError(f"indices {shape_text(indices.shape)} and updates {shape_text(updates.shape)} do not fit")
        _check_box(a.axis, x, updates)
        return x

    def evaluate(a: Attrs, x: Array, indices: Array, updates: Array) -> Array:
        positions: list[Array] = list(np.indices(updates.shape))
        positions[a.axis] = np.broadcast_to(wrapped(indices, x.shape[a.axis]), updates.shape)
        return scatter_into(x, tuple(positions), updates, a.reduction)


class ScatterNd(XtOp, name="scatter_nd"):
    """x with the slices `updates` stored (or combined by `reduction`) at the index vectors in indices' last dim."""

    x = operand()
    indices = operand()
    updates = operand()
    reduction = text("none", REDUCTIONS)

    def infer(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        check_indices(indices)
        same_dtype(x, updates)
        depth = indices.shape[-1] if indices.rank else None
        if not isinstance(depth, int) or depth > x.rank:
            raise InferError(f"index vectors of length {depth} do not fit rank {x.rank}")
        want = (*indices.shape[:-1], *x.shape[depth:])
        if len(want) != updates.rank or not all(map(same_dims, want, updates.shape)):
            raise InferError(f"updates are {shape_text(updates.shape)}, not {shape_text(want)}")
        return x

    def evaluate(a: Attrs, x: Array, indices: Array, updates: Array) -> Array:
        return scatter_into(x, _tuple_positions(x, indices, 0), updates, a.reduction)

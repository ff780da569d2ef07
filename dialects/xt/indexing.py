"""Reads and writes at computed positions, and ops whose result size depends on data."""

from typing import Any

import numpy as np

from xcc import symbolic
from xcc.dialects.xt.broadcasting import same_dtype, shape_text
from xcc.dialects.xt.fields import boolean, integer, operand, optional, text
from xcc.dialects.xt.numeric import in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, axis_of, same_dims
from xcc.dialects.xt.types import TensorType, dtype_name, is_integer
from xcc.symbolic import Dim

REDUCTIONS = ("none", "add", "mul", "max", "min")


def check_indices(t: TensorType) -> None:
    if not is_integer(t.dtype):
        raise InferError(f"indices are {t.dtype}, not integers")


def wrapped(indices: Any, size: int) -> Any:
    """Negative indices count from the end; then clamped into range, as compiled kernels do."""
    index = np.asarray(indices).astype(np.int64)
    index = np.where(index < 0, index + size, index)
    return np.clip(index, 0, max(size - 1, 0))


class Gather(XtOp, name="gather"):
    """x's slices at `indices` along `axis` (np.take): result dims are x[:axis], indices[batch_dims:], x[axis+1:].

    The first `batch_dims` dims of x and indices are one batch. Negative indices count from the end; the rest are
    clamped into range.
    """

    x = operand()
    indices = operand()
    axis = integer(0)
    batch_dims = integer(0)
    access = "movement"

    @staticmethod
    def normalize(a: Attrs, x: TensorType, indices: TensorType) -> None:
        a.axis = axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        axis = axis_of(a.axis, x.rank)
        if not 0 <= a.batch_dims <= min(axis, indices.rank):
            raise InferError(f"batch_dims {a.batch_dims} does not fit axis {axis} and indices of rank {indices.rank}")
        return x.with_shape([*x.shape[:axis], *indices.shape[a.batch_dims:], *x.shape[axis + 1:]])

    @staticmethod
    def evaluate(a: Attrs, x: Any, indices: Any) -> Any:
        index = wrapped(indices, x.shape[a.axis])
        if not a.batch_dims:
            return np.take(x, index, a.axis)
        batch = x.shape[:a.batch_dims]
        flat = x.reshape(-1, *x.shape[a.batch_dims:])
        rows = index.reshape(flat.shape[0], *indices.shape[a.batch_dims:])
        parts = [np.take(b, i, a.axis - a.batch_dims) for b, i in zip(flat, rows, strict=True)]
        tail = (*x.shape[a.batch_dims:a.axis], *indices.shape[a.batch_dims:], *x.shape[a.axis + 1:])
        return np.stack(parts).reshape(*batch, *tail) if parts else np.zeros((*batch, *tail), x.dtype)


def _tuple_positions(x: Any, indices: Any, batch: int) -> tuple[Any, ...]:
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

    @staticmethod
    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        depth = indices.shape[-1] if indices.rank else None
        if not isinstance(depth, int) or a.batch_dims + depth > x.rank or a.batch_dims >= indices.rank:
            raise InferError(f"index vectors of length {depth} and batch_dims {a.batch_dims} do not fit rank {x.rank}")
        return x.with_shape([*indices.shape[:-1], *x.shape[a.batch_dims + depth:]])

    @staticmethod
    def evaluate(a: Attrs, x: Any, indices: Any) -> Any:
        positions = _tuple_positions(x, indices, a.batch_dims)
        return x[positions] if positions else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))


class GatherElements(XtOp, name="gather_elements"):
    """result[i0, .., ik, ..] = x[i0, .., indices[i0, .., ik, ..], ..] with the indexed dim at `axis`."""

    x = operand()
    indices = operand()
    axis = integer(0)
    access = "movement"

    @staticmethod
    def normalize(a: Attrs, x: TensorType, indices: TensorType) -> None:
        a.axis = axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType, indices: TensorType) -> TensorType:
        check_indices(indices)
        axis_of(a.axis, x.rank)
        if indices.rank != x.rank:
            raise InferError(f"indices have rank {indices.rank}, x has {x.rank}")
        return x.with_shape(indices.shape)

    @staticmethod
    def evaluate(a: Attrs, x: Any, indices: Any) -> Any:
        box = x[tuple(slice(None) if d == a.axis else slice(0, n) for d, n in enumerate(indices.shape))]
        return np.take_along_axis(box, wrapped(indices, x.shape[a.axis]), a.axis)


COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_into(x: Any, positions: tuple[Any, ...], updates: Any, reduction: str) -> Any:
    """A copy of x with updates written; the last one wins, or all are combined."""

    def write(out: Any, values: Any) -> Any:
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

    With "none" and equal positions the last one wins.
    """

    x = operand()
    indices = operand()
    updates = operand()
    axis = integer(0)
    reduction = text("none", REDUCTIONS)
    access = "opaque"

    @staticmethod
    def normalize(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> None:
        a.axis = axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        check_indices(indices)
        same_dtype(x, updates)
        axis_of(a.axis, x.rank)
        if not x.rank == indices.rank == updates.rank or not all(map(same_dims, indices.shape, updates.shape)):
            raise InferError(f"indices {shape_text(indices.shape)} and updates {shape_text(updates.shape)} do not fit")
        return x

    @staticmethod
    def evaluate(a: Attrs, x: Any, indices: Any, updates: Any) -> Any:
        positions = list(np.indices(indices.shape))
        positions[a.axis] = wrapped(indices, x.shape[a.axis])
        return scatter_into(x, tuple(positions), updates, a.reduction)


class ScatterNd(XtOp, name="scatter_nd"):
    """x with the slices `updates` stored (or combined by `reduction`) at the index vectors in indices' last dim."""

    x = operand()
    indices = operand()
    updates = operand()
    reduction = text("none", REDUCTIONS)
    access = "opaque"

    @staticmethod
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

    @staticmethod
    def evaluate(a: Attrs, x: Any, indices: Any, updates: Any) -> Any:
        return scatter_into(x, _tuple_positions(x, indices, 0), updates, a.reduction)


def _new_symbol(a: Attrs) -> Dim:
    try:
        return symbolic.sym(a.symbol)
    except ValueError as e:
        raise InferError(str(e)) from None


def _check_places(places: TensorType | None, count: Dim) -> None:
    if places is not None and (not is_integer(places.dtype) or places.rank != 1
                               or not same_dims(places.shape[0], count)):
        raise InferError(f"places are {places}, not {count} integers")


class Nonzero(XtOp, name="nonzero"):
    """The i64 coordinates of the elements that are not zero, row-major: [rank, symbol]. `symbol` names the count.

    `places`, where they are known already: for each element of flat x, how many are not zero up to and with it.
    """

    x = operand()
    places = optional()
    symbol = text()
    access = "opaque"

    @staticmethod
    def infer(a: Attrs, x: TensorType, places: TensorType | None = None) -> TensorType:
        _check_places(places, symbolic.product(x.shape))
        return TensorType((x.rank, _new_symbol(a)), "i64")

    @staticmethod
    def evaluate(a: Attrs, x: Any, places: Any = None) -> Any:
        return np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1)


class Unique(XtOp, name="unique"):
    """Distinct elements (or slices along `axis`, when `flat` is false), ascending when `sorted`, else by first use.

    Results: values; i64 index of the first use of each; i64 index into values of each element; i64 counts. `symbol`
    names their number.
    """

    x = operand()
    symbol = text()
    axis = integer(0)
    flat = boolean(True)
    sorted = boolean(True)
    access = "opaque"
    result_names = ("values", "first", "inverse", "counts")

    @staticmethod
    def normalize(a: Attrs, x: TensorType) -> None:
        a.axis = 0 if a.flat else axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, ...]:
        n = _new_symbol(a)
        values = x.with_shape([n] if a.flat else [*x.shape[:a.axis], n, *x.shape[a.axis + 1:]])
        count = symbolic.product(x.shape) if a.flat else x.shape[axis_of(a.axis, x.rank)]
        line = TensorType((n,), "i64")
        return values, line, TensorType((count,), "i64"), line

    @staticmethod
    def evaluate(a: Attrs, x: Any) -> Any:
        axis = None if a.flat else a.axis
        values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
        inverse = inverse.reshape(-1)
        if not a.sorted:
            by_use = np.argsort(first)
            place = np.empty_like(by_use)
            place[by_use] = np.arange(len(by_use))
            values, first = np.take(values, by_use, axis or 0), first[by_use]
            inverse, counts = place[inverse], counts[by_use]
        return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


class UniqueRuns(XtOp, name="unique_runs"):
    """What xt.unique gives of flat x, from x sorted (`values`, and `indices` into x) where equal elements are runs.

    `runs`: for each element how many runs begin up to and with it; `next`: where the next run begins; `at`: the number
    of its distinct element among the results. All i32.
    """

    values = operand()
    indices = operand()
    runs = operand()
    next = operand()
    at = operand()
    symbol = text()
    access = "opaque"
    result_names = ("distinct", "first", "inverse", "counts")

    @staticmethod
    def infer(a: Attrs, *operands: TensorType) -> tuple[TensorType, ...]:
        values = operands[0]
        if any(t.rank != 1 or not same_dims(t.shape[0], values.shape[0]) for t in operands):
            raise InferError(f"{', '.join(map(str, operands))} are not lines of one size")
        line = TensorType((_new_symbol(a),), "i64")
        return line.with_dtype(values.dtype), line, TensorType(values.shape, "i64"), line

    @staticmethod
    def evaluate(a: Attrs, values: Any, indices: Any, runs: Any, next: Any, at: Any) -> Any:
        heads = np.flatnonzero(np.diff(runs, prepend=0))
        inverse = np.empty(len(values), np.int64)
        inverse[indices] = at
        order = heads[np.argsort(at[heads])]
        return values[order], indices[order], inverse, (next[order] - order).astype(np.int64)


class Compress(XtOp, name="compress"):
    """The slices of x along `axis` (of flat x when `flat`) where the i1 vector `condition` is true.

    `places`, where they are known already: for each entry of the condition, how many are true up to and with it.
    """

    x = operand()
    condition = operand()
    places = optional()
    symbol = text()
    axis = integer(0)
    flat = boolean(False)
    access = "opaque"

    @staticmethod
    def normalize(a: Attrs, x: TensorType, condition: TensorType, places: TensorType | None = None) -> None:
        a.axis = 0 if a.flat else axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType, condition: TensorType, places: TensorType | None = None) -> TensorType:
        _check_places(places, condition.shape[0] if condition.rank == 1 else 0)
        if condition.rank != 1 or condition.dtype != "i1":
            raise InferError(f"the condition is {condition}, not an i1 vector")
        n = _new_symbol(a)
        return x.with_shape([n] if a.flat else [*x.shape[:a.axis], n, *x.shape[a.axis + 1:]])

    @staticmethod
    def evaluate(a: Attrs, x: Any, condition: Any, places: Any = None) -> Any:
        return np.compress(condition, x, None if a.flat else a.axis)

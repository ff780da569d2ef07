"""Ordering along an axis."""

from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects.xt.fields import axis, boolean, dims, integer, operand
from xcc.dialects.xt.numeric import NARROW, Array
from xcc.dialects.xt.op import BUILDERS, Attrs, InferError, XtOp, build
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, dtype_name
from xcc.symbolic import Dim, dim_min, floordiv, mod

KEYS = ("i32", "i64")     # of sorts by merging


def order(x: Array, axis: int, descending: bool) -> Array:
    """Indices that sort `x` along `axis`; equal elements keep their order; NaN counts as the largest."""
    wide = x.astype(np.float32) if dtype_name(x.dtype) in NARROW else x
    if not descending:
        return np.argsort(wide, axis, kind="stable")
    n = x.shape[axis]
    return np.flip(n - 1 - np.argsort(np.flip(wide, axis), axis, kind="stable"), axis)


class Sort(XtOp, name="sort"):
    """x sorted along `axis`, and the i64 position in x of each element. NaN counts as the largest.

    Equal elements keep their order when `stable`.
    """

    x = operand()
    axis = axis(-1)
    descending = boolean(False)
    stable = boolean(True)
    result_names = ("values", "indices")

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, TensorType]:
        return x, x.with_dtype("i64")

    def evaluate(a: Attrs, x: Array) -> tuple[Array, Array]:
        index = order(x, a.axis, a.descending)
        return np.take_along_axis(x, index, a.axis), index.astype(np.int64)


class TopK(XtOp, name="top_k"):
    """The k largest (or smallest) elements along `axis`, best first, and their i64 indices; ties: lower index first."""

    x = operand()
    k = dims()
    axis = axis(-1)
    largest = boolean(True)
    result_names = ("values", "indices")

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, TensorType]:
        left = x.shape[a.axis] - a.k[0]
        if isinstance(left, int) and left < 0:
            raise InferError(f"k = {a.k[0]} is more than the {x.shape[a.axis]} elements of dim {a.axis}")
        values = x.with_shape([*x.shape[:a.axis], a.k[0], *x.shape[a.axis + 1:]])
        return values, values.with_dtype("i64")

    def evaluate(a: Attrs, x: Array) -> tuple[Array, Array]:
        (k,) = static_dims(a.k, "k")
        index = np.take(order(x, a.axis, a.largest), np.arange(k), a.axis)
        return np.take_along_axis(x, index, a.axis), index.astype(np.int64)


def top_k(x: Value, *, k: Dim, axis: int = -1, largest: bool = True) -> tuple[Value, Value]:
    """xt.top_k: values and i64 indices."""
    return build(TopK, x, k=(k,), axis=axis, largest=largest)


BUILDERS.update(top_k=top_k)


def _runs(size: Dim, run: int, keep: int) -> Dim:
    """Elements that are left of `size` when each `run` keeps the first `keep`."""
    return size if keep >= run else floordiv(size, run) * keep + dim_min(mod(size, run), keep)


class SortRows(XtOp, name="sort_rows"):
    """The first `keep` elements of each sorted row of x [rows, n] and their i64 places, stable; NaN is the largest.

    Of NaN the payload may be lost.
    """

    x = operand()
    keep = integer()
    descending = boolean(False)
    result_names = ("values", "places")

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, TensorType]:
        if x.rank != 2 or not isinstance(x.shape[1], int) or not 0 < a.keep <= x.shape[1]:
            raise InferError(f"{a.keep} elements of the rows of {x}")
        values = x.with_shape((x.shape[0], a.keep))
        return values, values.with_dtype("i64")

    def evaluate(a: Attrs, x: Any) -> Any:
        index = order(x, 1, a.descending)[:, :a.keep]
        return np.take_along_axis(x, index, 1), index.astype(np.int64)


class SortRuns(XtOp, name="sort_runs"):
    """Each `run` of neighbours along the last dim of integers sorted on its own, and the i32 positions along it.

    Of a run the first `keep` elements are left. Both are powers of two.
    """

    keys = operand()
    run = integer()
    keep = integer()
    result_names = ("sorted", "places")

    def infer(a: Attrs, keys: TensorType) -> tuple[TensorType, TensorType]:
        powers = all(n > 0 and not n & n - 1 for n in (a.run, a.keep))
        if keys.rank < 1 or not powers or a.keep > a.run or keys.dtype not in KEYS:
            raise InferError(f"{a.keep} of runs of {a.run} of {keys}")
        out = keys.with_shape([*keys.shape[:-1], _runs(keys.shape[-1], a.run, a.keep)])
        return out, out.with_dtype("i32")

    def evaluate(a: Attrs, keys: Any) -> Any:
        starts = range(0, keys.shape[-1], a.run)
        runs = [s + order(keys[..., s:s + a.run], -1, False)[..., :a.keep] for s in starts]
        index: Array = np.concatenate(runs, -1) if runs else np.zeros(keys.shape, np.int64)
        return np.take_along_axis(keys, index, -1), index.astype(np.int32)


class MergeRuns(XtOp, name="merge_runs"):
    """`ways` sorted runs at a time along the last dim become one, of which the first `keep` elements are kept.

    A run has `run` elements, the last one may have fewer. Equal elements keep their order; `numbers` go along. Sizes
    are powers of two.
    """

    keys = operand()
    numbers = operand()
    run = integer()
    ways = integer(2)
    keep = integer()
    result_names = ("merged", "places")

    def infer(a: Attrs, keys: TensorType, numbers: TensorType) -> tuple[TensorType, TensorType]:
        powers = all(n > 0 and not n & n - 1 for n in (a.run, a.ways, a.keep))
        if keys.rank < 1 or keys.dtype not in KEYS or numbers.shape != keys.shape or not powers or a.run > a.keep \
                or a.run * a.ways > 1 << 31:
            raise InferError(f"{a.ways} runs of {a.run} of {keys} and {numbers}, {a.keep} kept")
        out = keys.with_shape([*keys.shape[:-1], _runs(keys.shape[-1], a.ways * a.run, a.keep)])
        return out, out.with_dtype(numbers.dtype)

    def evaluate(a: Attrs, keys: Any, numbers: Any) -> Any:
        out = []
        for s in range(0, keys.shape[-1], a.ways * a.run):
            v, i = keys[..., s:s + a.ways * a.run], numbers[..., s:s + a.ways * a.run]
            index = order(v, -1, False)[..., :a.keep]
            out.append([np.take_along_axis(n, index, -1) for n in (v, i)])
        return tuple(np.concatenate(parts, -1) for parts in zip(*out, strict=True)) if out else (keys, numbers)

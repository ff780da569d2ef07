"""Ops whose result's size depends on data, and is a symbol of its own."""

from typing import Any

import numpy as np

from xcc import symbolic
from xcc.dialects.xt.fields import boolean, integer, operand, optional, text
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp, axis_of, same_dims
from xcc.dialects.xt.types import TensorType, is_integer
from xcc.symbolic import Dim


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

    def infer(a: Attrs, x: TensorType, places: TensorType | None = None) -> TensorType:
        _check_places(places, symbolic.product(x.shape))
        return TensorType((x.rank, _new_symbol(a)), "i64")

    def evaluate(a: Attrs, x: Array, places: Array | None = None) -> Array:
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
    result_names = ("values", "first", "inverse", "counts")

    def normalize(a: Attrs, x: TensorType) -> None:
        a.axis = 0 if a.flat else axis_of(a.axis, x.rank)

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, ...]:
        n = _new_symbol(a)
        values = x.with_shape([n] if a.flat else [*x.shape[:a.axis], n, *x.shape[a.axis + 1:]])
        count = symbolic.product(x.shape) if a.flat else x.shape[axis_of(a.axis, x.rank)]
        line = TensorType((n,), "i64")
        return values, line, TensorType((count,), "i64"), line

    def evaluate(a: Attrs, x: Array) -> tuple[Array, Array, Array, Array]:
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
    result_names = ("distinct", "first", "inverse", "counts")

    def infer(a: Attrs, *operands: TensorType) -> tuple[TensorType, ...]:
        values = operands[0]
        if any(t.rank != 1 or not same_dims(t.shape[0], values.shape[0]) for t in operands):
            raise InferError(f"{', '.join(map(str, operands))} are not lines of one size")
        line = TensorType((_new_symbol(a),), "i64")
        return line.with_dtype(values.dtype), line, TensorType(values.shape, "i64"), line

    def evaluate(a: Attrs, values: Array, indices: Any, runs: Array, next: Array, at: Array) -> tuple[Array, ...]:
        heads = np.flatnonzero(np.diff(runs, prepend=0))
        inverse = np.empty(len(values), np.int64)
        inverse[indices] = at
        order = heads[np.argsort(at[heads])]
        return values[order], indices[order], inverse, (next[order] - order).astype(np.int64)


class Compress(XtOp, name="compress"):
    """The slices of x along `axis` (of flat x when `flat`) where the i1 vector `condition`, at most as long, is true.

    `places`, where they are known already: for each entry of the condition, how many are true up to and with it.
    """

    x = operand()
    condition = operand()
    places = optional()
    symbol = text()
    axis = integer(0)
    flat = boolean(False)

    def normalize(a: Attrs, x: TensorType, condition: TensorType, places: TensorType | None = None) -> None:
        a.axis = 0 if a.flat else axis_of(a.axis, x.rank)

    def infer(a: Attrs, x: TensorType, condition: TensorType, places: TensorType | None = None) -> TensorType:
        _check_places(places, condition.shape[0] if condition.rank == 1 else 0)
        if condition.rank != 1 or condition.dtype != "i1":
            raise InferError(f"the condition is {condition}, not an i1 vector")
        there, given = symbolic.product(x.shape) if a.flat else x.shape[a.axis], condition.shape[0]
        if isinstance(there, int) and isinstance(given, int) and given > there:
            raise InferError(f"the condition is longer, {given}, than the {there} that it chooses from")
        n = _new_symbol(a)
        return x.with_shape([n] if a.flat else [*x.shape[:a.axis], n, *x.shape[a.axis + 1:]])

    def evaluate(a: Attrs, x: Array, condition: Array, places: Array | None = None) -> Array:
        return np.compress(condition, x, None if a.flat else a.axis)

"""Tensors made of sizes and numbers alone: constants, ranges, diagonals and triangles."""

from __future__ import annotations

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.bounds import Undecided, sign
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.element_types import from_onnx, is_floating
from xcc.frontends.onnx.ratio import Ratio
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.slicing import at_least
from xcc.frontends.shared.helpers import convert, full, scalar
from xcc.symbolic import Dim


@onnx_op("Constant")
def constant(cx: Context) -> Value:
    cx.fail("a constant without a numeric value is not supported")


@onnx_op("ConstantOfShape")
def constant_of_shape(cx: Context) -> Value:
    value = cx.attr("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return full(cx.dims_or_declared(0), array.reshape(-1)[0], array.dtype)


@onnx_op("Range")
def range_(cx: Context) -> Value:
    """output = Range(start, limit, delta)."""
    dtype = cx.dtype(0)
    declared = cx.declared()
    if declared is not None and any(cx.tensor(i).data is None for i in range(3)):
        length = declared[0]
    else:
        length = _range_length(cx, is_floating(dtype))
    start, delta = (_scalar_of(cx, i) for i in (0, 2))
    steps = xt.iota(shape=(length,), axis=0, dtype="i64")
    return xt.add(xt.mul(convert(steps, dtype), delta), start)


def _scalar_of(cx: Context, i: int) -> Value:
    return xt.reshape(cx[i], shape=()) if cx.rank(i) else cx[i]


def _range_length(cx: Context, floating: bool) -> Dim:
    for i in range(3):
        if cx.tensor(i).data is None:
            cx.dims(i)
    if all(cx.tensor(i).const is not None for i in range(3)) or floating and not _whole(cx):
        start, limit, delta = (cx.const(i).reshape(-1)[0].astype(np.float64) for i in range(3))
        if delta == 0:
            cx.fail("a range with step 0")
        return max(0, int(np.ceil((limit - start) / delta)))
    start, limit = cx.dims(0)[0], cx.dims(1)[0]
    delta = cx.dims(2)[0]
    if delta == 0:
        cx.fail("a range with step 0")
    try:
        up = sign(cx.graph.model.known, delta) > 0
    except Undecided:
        cx.fail(f"whether the range counts up or down depends on values: bound the step (--dim), of {delta}")
    distance, step = (limit - start, delta) if up else (start - limit, delta * -1)
    some = at_least(cx, step, 1)
    if some != step:
        xt.require(step, some, cx.where("a range with step 0"))
    return at_least(cx, symbolic.ceildiv(distance, some), 0)


def _whole(cx: Context) -> bool:
    """Whether start, limit and delta are whole numbers, known as symbols."""
    data = [d for i in range(3) for d in cx.tensor(i).data.reshape(-1)]  # type: ignore[union-attr]
    return all(isinstance(d, symbolic.Expr) or not isinstance(d, Ratio) and float(d).is_integer() for d in data)


@onnx_op("EyeLike")
def eye_like(cx: Context) -> Value:
    """A matrix with ones on diagonal k."""
    shape = cx.shape(0)
    dtype = from_onnx(cx.attr("dtype")) if cx.attr("dtype") is not None else cx.dtype(0)
    rows = xt.iota(shape=shape, axis=0, dtype="i64")
    columns = xt.iota(shape=shape, axis=1, dtype="i64")
    return convert(xt.compare(xt.add(rows, xt.scalar(cx.attr("k", 0), "i64")), columns, direction="eq"), dtype)


@onnx_op("Trilu")
@onnx_op("Trilu", domain="com.microsoft")
def triangle(cx: Context) -> Value:
    """output = Trilu(input, k?, upper): the other triangle is 0."""
    x, shape = cx[0], cx.shape(0)
    if len(shape) < 2:
        cx.fail("takes at least two dims")
    k = xt.reshape(convert(cx[1], "i64"), shape=()) if cx.has(1) else xt.scalar(0, "i64")
    rows = xt.add(xt.iota(shape=shape[-2:], axis=0, dtype="i64"), k)
    columns = xt.iota(shape=shape[-2:], axis=1, dtype="i64")
    keep = xt.compare(columns, rows, direction="ge" if cx.attr("upper", 1) else "le")
    return xt.select(keep, x, scalar(0, x))

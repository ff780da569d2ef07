"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Tensor, element_dtype
from xcc.frontends.onnx.element_types import is_floating
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, count, element, scalar

_KINDS = {"ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}
_NAMES = (*_KINDS, "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
          "ReduceSumSquare")


@onnx_op(*(n for n in _NAMES if n != "ReduceSum"))
@onnx_op("ReduceSum")
def reduce_attributes(cx: Context) -> Value | Tensor:
    """reduced = Reduce*(data, axes, keepdims), axes as an attribute."""
    return _reduce(cx, cx.attr("axes"))


@onnx_op(*(n for n in _NAMES if n != "ReduceSum"), since=18)
@onnx_op("ReduceSum", since=13)
def reduce_operands(cx: Context) -> Value | Tensor:
    """reduced = Reduce*(data, axes?, keepdims, noop_with_empty_axes)."""
    return _reduce(cx, cx.static_ints(1) if cx.has(1) and cx.shape(1) != (0,) else None)


def _reduce(cx: Context, axes: Sequence[int] | None) -> Value | Tensor:
    x = cx[0]
    if not axes:
        if cx.attr("noop_with_empty_axes", 0):
            return _point(cx, x)
        axes = range(cx.rank(0))
    axes = tuple(sorted({cx.normal_axis(a) for a in axes})) if cx.rank(0) else ()
    keepdims = bool(cx.attr("keepdims", 1))

    def over(kind: str, value: Value) -> Value:
        return xt.reduce(value, kind=kind, axes=axes, keepdims=keepdims)

    op = cx.op
    if op == "ReduceSum":
        return _sum(cx, over("sum", x))
    if op in _KINDS:
        return _boolean(over, _KINDS[op], x)
    if op == "ReduceMean":
        return xt.div(over("sum", x), count(x, axes, element(x)))
    if op == "ReduceL1":
        return over("sum", xt.abs(x))
    if op == "ReduceLogSum":
        return xt.log(over("sum", x))
    if op == "ReduceLogSumExp":
        return _log_sum_exp(x, axes, keepdims)
    total = over("sum", xt.mul(x, x))
    return total if op == "ReduceSumSquare" else _square_root(total, cx)


def _sum(cx: Context, total: Value) -> Value | Tensor:
    """The sum of flags that a node has counted is known as the symbol that it gave their number."""
    count = cx.graph.model.flags.sum_of(total, cx.node.output[0])
    if count is None:
        return total
    shape = xt.shape_of(total)
    return Tensor(element_dtype(total), shape, total, np.array(count, object).reshape(shape))


def _boolean(over: Callable[[str, Value], Value], kind: str, x: Value) -> Value:
    if element(x) == "i1":
        kind = {"max": "or", "min": "and"}.get(kind, kind)
    return over(kind, x)


def _square_root(x: Value, cx: Context) -> Value:
    if is_floating(cx.dtype(0)):
        return xt.sqrt(x)
    return convert(xt.sqrt(convert(x, "f64")), element(x))


def _point(cx: Context, x: Value) -> Value:
    """With noop_with_empty_axes only the element-wise part of the op happens."""
    if cx.op in ("ReduceL1", "ReduceL2"):
        return xt.abs(x)
    if cx.op == "ReduceLogSum":
        return xt.log(x)
    return xt.mul(x, x) if cx.op == "ReduceSumSquare" else x


def _log_sum_exp(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """max + log(sum(exp(x - max))), which neither overflows nor gives NaN for infinite maxima."""
    top = xt.reduce(x, kind="max", axes=axes, keepdims=True)
    finite = xt.select(xt.is_finite(top), top, scalar(0, top))
    total = xt.log(xt.reduce(xt.exp(xt.sub(x, finite)), kind="sum", axes=axes, keepdims=keepdims))
    if not keepdims:
        finite = xt.reshape(finite, shape=xt.shape_of(total))
    return xt.add(total, finite)


@onnx_op("ArgMax", "ArgMin")
def arg_reduce(cx: Context) -> Value:
    return xt.arg_reduce(cx[0], kind=cx.op.lower(), axis=cx.axis(), keepdims=bool(cx.attr("keepdims", 1)),
                         select_last=bool(cx.attr("select_last_index", 0)))


@onnx_op("CumSum", "CumProd")
def cumulative(cx: Context) -> Value:
    """y = CumSum(x, axis, exclusive, reverse)."""
    axis = 0 if cx.rank(0) == 1 else cx.normal_axis(cx.static_ints(1)[0])
    return xt.cumulative(cx[0], kind="sum" if cx.op == "CumSum" else "prod", axis=axis,
                         exclusive=bool(cx.attr("exclusive", 0)), reverse=bool(cx.attr("reverse", 0)))



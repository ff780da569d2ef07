"""Reductions over dims."""

from __future__ import annotations

import math

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, count, element, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.elementwise import truth
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

NARROW = ("f16", "bf16")


def over(cx: Context, kind: str, x: Value, axes: tuple[int, ...], result: int = 0) -> Value:
    """xt.reduce, with the dims that torch says the result has."""
    keep = len(cx.out(result).shape) == len(xt.shape_of(x)) and bool(axes)
    if element(x) == "i1":
        kind = {"max": "or", "min": "and", "prod": "and", "sum": "or"}.get(kind, kind)
    return xt.reduce(x, kind=kind, axes=axes, keepdims=keep) if axes else x


@aten("sum", "sum.dim_IntList")
def total(cx: Context) -> Value:
    return over(cx, "sum", cx.value_of(cx["self"], cx.out().dtype), cx.axes())


@aten("prod", "prod.dim_int")
def product(cx: Context) -> Value:
    return over(cx, "prod", cx.value_of(cx["self"], cx.out().dtype), cx.axes())


@aten("mean", "mean.dim")
def mean(cx: Context) -> Value:
    """The sum, divided; of narrow floats in f32."""
    kind = cx.out().dtype
    wide = "f32" if kind in NARROW else kind
    x, axes = cx.value_of(cx["self"], wide), cx.axes()
    return convert(xt.div(over(cx, "sum", x, axes), count(x, axes, wide)), kind)


@aten("amax", "amin", "max", "min")
def extreme(cx: Context) -> Value:
    """The largest or smallest; NaN wins."""
    return over(cx, cx.node.op.split(".")[1][-3:], cx.tensor("self"), cx.axes())


@aten("any", "any.dim", "any.dims", "all", "all.dim", "all.dims", "_is_any_true", "_is_all_true")
def logical(cx: Context) -> Value:
    """Whether any or all are not zero; no dims at all is none reduced."""
    x = truth(cx.tensor("self"))
    axes = () if cx.args.get("dim") == () else cx.axes()
    out = over(cx, "or" if "any" in cx.node.op else "and", x, axes)
    return convert(out, cx.out().dtype)


@aten("argmax", "argmin")
def arg_extreme(cx: Context) -> Value:
    """The place of the first largest or smallest; of flat self without a dim."""
    x = cx.tensor("self")
    if cx["dim"] is None or not cx.rank():
        x, axis = xt.reshape(x, shape=(count_of(x),)), 0
    else:
        axis = cx.axis()
    return xt.reshape(_places(x, cx.node.op.split(".")[1], axis), shape=cx.out().shape)


def count_of(x: Value) -> Dim:
    """The number of elements, a dim."""
    return symbolic.product(xt.shape_of(x))


def _places(x: Value, kind: str, axis: int) -> Value:
    x = convert(x, "ui8") if element(x) == "i1" else x
    return xt.arg_reduce(x, kind=kind, axis=axis, keepdims=True)


@aten("max.dim", "min.dim")
def extreme_and_place(cx: Context) -> tuple[Value | None, ...]:
    """Values and indices."""
    x = cx.tensor("self")
    if not cx.rank():
        return x, xt.scalar(0, "i64")
    kind, axis = cx.node.op.split(".")[1], cx.axis()
    places = xt.reshape(_places(x, f"arg{kind}", axis), shape=cx.out(1).shape) if cx.wants(1) else None
    return over(cx, kind, x, (axis,)), places


@aten("var.correction", "var.dim", "var", "std.correction", "std.dim", "std", "var_mean.correction",
      "std_mean.correction")
def variance(cx: Context) -> list[Value]:
    """sum((x - mean)^2) / max(count - correction, 0); its root for std; with the mean after it for *_mean."""
    kind = cx.out().dtype
    wide = "f32" if kind in NARROW else kind
    x, axes = cx.value_of(cx["self"], wide), cx.axes()
    size = count(x, axes, wide)
    middle = xt.div(xt.reduce(x, kind="sum", axes=axes, keepdims=True), size)
    far = xt.sub(x, middle)
    left = xt.maximum(xt.sub(size, scalar(_correction(cx), size)), scalar(0, size))
    out = xt.div(over(cx, "sum", xt.mul(far, far), axes), left)
    out = xt.sqrt(out) if "std" in cx.node.op else out
    results = [convert(out, kind)]
    if "_mean" in cx.node.op:
        results.append(convert(xt.reshape(middle, shape=cx.out(1).shape), kind))
    return results


def _correction(cx: Context) -> float:
    if "correction" in cx.args:
        return float(cx.number("correction", 1))
    return float(cx.get("unbiased", True))


_RUNNING = {"cumsum": "sum", "cumprod": "prod", "logcumsumexp": "logsumexp", "_logcumsumexp": "logsumexp"}


@aten(*_RUNNING)
def running(cx: Context) -> Value:
    """The reduction of all elements up to each along dim."""
    x = cx.value_of(cx["self"], cx.out().dtype)
    return xt.cumulative(x, kind=_RUNNING[cx.node.op.split(".")[1]], axis=cx.axis()) if cx.rank() else x


@aten("cummax", "cummin")
def running_extreme(cx: Context) -> tuple[Value, Value]:
    """The extreme of all elements up to each along dim, and the place of the last one that it equals."""
    x = cx.tensor("self")
    if not cx.rank():
        return x, xt.scalar(0, "i64")
    kind, axis, own = cx.node.op.split(".")[1][-3:], cx.axis(), element(x)
    values = xt.cumulative(convert(x, "ui8") if own == "i1" else x, kind=kind, axis=axis)
    values = convert(values, own)
    here = xt.compare(x, values, direction="eq")
    if category(own) == 2:
        here = xt.or_(here, xt.is_nan(x))
    places = xt.iota(shape=xt.shape_of(x), axis=axis, dtype="i64")
    return values, xt.cumulative(xt.select(here, places, xt.scalar(0, "i64")), kind="max", axis=axis)


@aten("linalg_vector_norm")
def vector_norm(cx: Context) -> Value:
    """(sum |x|^ord)^(1/ord), in the result's type; of narrow floats in f32."""
    kind = cx.out().dtype
    x, axes = xt.abs(cx.value_of(cx["self"], "f32" if kind in NARROW else kind)), cx.axes()
    return convert(norm_over(x, axes, float(cx.number("ord", 2)), bool(cx["keepdim"])), kind)


def norm_over(x: Value, axes: tuple[int, ...], order: float, keepdims: bool) -> Value:
    """The norm of magnitudes: the largest or smallest for an infinite order, how many are not 0 for order 0."""

    def over_axes(kind: str, value: Value) -> Value:
        return xt.reduce(value, kind=kind, axes=axes, keepdims=keepdims)

    if order == 0:
        return over_axes("sum", convert(truth(x), element(x)))
    if order in (math.inf, -math.inf):
        return over_axes("max" if order > 0 else "min", x)
    if order == 1:
        return over_axes("sum", x)
    if order == 2:
        return xt.sqrt(over_axes("sum", xt.mul(x, x)))
    return xt.pow(over_axes("sum", xt.pow(x, scalar(order, x))), scalar(1 / order, x))

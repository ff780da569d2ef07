"""Arithmetic on values known at import: object arrays of ints, Exprs, Ratios and bools."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.bounds import EXACT, Bounds, Undecided, interval, sign
from xcc.dialects import xt
from xcc.frontends.onnx.context import Array, Context
from xcc.frontends.onnx.element_types import from_onnx, is_floating
from xcc.frontends.onnx.ratio import (
    Number,
    Ratio,
    add,
    exact,
    is_negative,
    multiply,
    negate,
    parts,
    ratio,
    whole,
)
from xcc.symbolic import Dim, Expr

__all__ = ["ARITHMETIC", "Rule"]

Rule = Callable[[Context, list[Array]], Any]


def _elementwise(function: Callable[..., Any]) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        broadcast = np.broadcast_arrays(*xs)
        out = np.empty(broadcast[0].shape, object)
        for at in np.ndindex(out.shape):
            out[at] = function(*(b[at] for b in broadcast))
        return out

    return apply


def _divide(cx: Context, xs: list[Array]) -> Array:
    floating = is_floating(cx.dtype(0))

    def divide(a: Number, b: Number) -> Number:
        a, b = exact(a), exact(b)
        if not floating:
            return quotient(cx, whole(a), whole(b))
        (top, under), (bottom, over) = parts(a), parts(b)
        low, high = interval(cx.graph.model.known, bottom)
        if low > 0:
            return ratio(top * over, under * bottom)
        if high < 0:
            return ratio(top * over * -1, under * bottom * -1)
        raise Undecided

    out: Array = _elementwise(divide)(cx, xs)
    return out


def quotient(cx: Context, a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded towards 0; where `a` is not negative, which windows that fit may tell, as floor division."""
    known = cx.graph.model.known
    _not_zero(cx, b)
    if interval(known, b)[1] < 0:
        a, b = a * -1, b * -1
    positive = interval(known, b)[0] > 0
    if positive and (interval(known, a)[0] >= 0 or cx.graph.model.sizes.fits(a, b, cx.place)):
        return symbolic.floordiv(a, b)
    return symbolic.truncdiv(a, b)


def _not_zero(cx: Context, b: Dim) -> None:
    """A run ends with an error where the divisor `b` is 0."""
    low, high = interval(cx.graph.model.known, b)
    message = cx.where("a division by zero")
    if low == high == 0:
        cx.fail("a division by zero")
    if low == 0:
        xt.require(b, symbolic.dim_max(b, 1), message)
    elif low < 0 <= high:
        xt.require(symbolic.is_equal(b, 0), 0, message)


def _round(up: bool) -> Callable[[Number], Number]:
    def rounded(a: Number) -> Number:
        top, bottom = parts(exact(a))
        return symbolic.ceildiv(top, bottom) if up else symbolic.floordiv(top, bottom)

    return rounded


def _cast(cx: Context, xs: list[Array]) -> Array:
    target = from_onnx(cx.attr("to")) if cx.op == "Cast" else cx.dtype(1)
    if target == np.bool_:
        return _elementwise(_not)(cx, [_compare("eq")(cx, [xs[0], np.array(0, object)])])
    if is_floating(target):
        return xs[0]

    out: Array = _elementwise(lambda a: quotient(cx, *parts(exact(a))))(cx, [xs[0]])
    return out


def _compare(direction: str) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        def decide(a: Number, b: Number) -> bool | Dim:
            difference = add(a, negate(b))
            try:
                return _decide(direction, difference, cx.graph.model.known)
            except Undecided:
                return _HOLDS[direction](parts(difference)[0])

        return _elementwise(decide)(cx, xs)

    return apply


def _decide(direction: str, difference: Number, bounds: Bounds) -> bool:
    """Whether ``a <direction> b`` for ``difference = a - b``."""
    if isinstance(difference, Ratio):
        difference = difference.top
    if isinstance(difference, int | Fraction):
        s, strict = (difference > 0) - (difference < 0), True
    else:
        s = sign(bounds, whole(difference))
        strict = abs(s) == 2
        s = (s > 0) - (s < 0)
    if direction == "eq" and strict:
        return s == 0
    if direction == "gt" and (strict or s < 0):
        return s > 0
    if direction == "lt" and (strict or s > 0):
        return s < 0
    if direction == "ge" and (s > 0 or strict):
        return s >= 0
    if direction == "le" and (s < 0 or strict):
        return s <= 0
    raise Undecided


_HOLDS: dict[str, Callable[[Dim], Dim]] = {
    "eq": lambda d: symbolic.is_equal(d, 0), "lt": is_negative, "gt": lambda d: is_negative(d * -1),
    "le": lambda d: 1 - is_negative(d * -1), "ge": lambda d: 1 - is_negative(d)}
"""1 where a difference is as the comparison says, else 0."""


def _where(cx: Context, xs: list[Array]) -> Array:
    known = cx.graph.model.known

    def pick(c: Dim, a: Number, b: Number) -> Number:
        if isinstance(c, bool | np.bool_ | int):
            return a if c else b
        if not isinstance(c, Expr):
            raise Undecided
        a, b = whole(a), whole(b)
        low, high = zip(interval(known, a), interval(known, b), strict=True)
        return _within(b + c * (a - b), min(low), max(high))

    out: Array = _elementwise(pick)(cx, xs)
    return out


def _within(d: Dim, low: float, high: float) -> Dim:
    """`d`, which is in low..high, written so that it shows."""
    d = symbolic.dim_max(d, int(low)) if abs(low) < EXACT else d
    return symbolic.dim_min(d, int(high)) if abs(high) < EXACT else d


def _not(a: Dim) -> Dim:
    return 1 - a if isinstance(a, Expr) else not a


def _and(a: Dim, b: Dim) -> Dim:
    return a * b if isinstance(a, Expr) or isinstance(b, Expr) else bool(a and b)


def _or(a: Dim, b: Dim) -> Dim:
    return _not(_and(_not(a), _not(b)))


def _extreme(function: Callable[[Dim, Dim], Dim]) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        out = xs[0]
        for x in xs[1:]:
            out = _elementwise(lambda a, b: function(whole(a), whole(b)))(cx, [out, x])
        return out

    return apply


def _mod(cx: Context, xs: list[Array]) -> Array:
    def divided(a: Number, b: Number) -> Dim:
        a, b = whole(a), whole(b)
        if cx.attr("fmod", 0):
            return a - quotient(cx, a, b) * b
        _not_zero(cx, b)
        return symbolic.mod(a, b)       # the remainder has the divisor's sign
    out: Array = _elementwise(divided)(cx, xs)
    return out


def _clip(cx: Context, xs: list[Array]) -> Array:
    if cx.opset < 11:
        raise Undecided
    out, *bounds = xs
    for function, bound in zip((symbolic.dim_max, symbolic.dim_min), bounds, strict=False):
        if bound.size and bound.flat[0] is not None:
            out = _extreme(function)(cx, [out, bound])
    return out


def _abs(cx: Context, xs: list[Array]) -> Array:
    def positive(a: Number) -> Number:
        top, bottom = parts(exact(a))
        known = interval(cx.graph.model.known, top)[0] >= 0
        return ratio(top if known else symbolic.dim_max(top, top * -1), bottom)

    out: Array = _elementwise(positive)(cx, xs)
    return out


def _sign(cx: Context, xs: list[Array]) -> Array:
    """-1, 0 or 1; with the floor of what Abs gives it is how PyTorch's exporter rounds quotients towards 0."""
    def signed(a: Number) -> Dim:
        top = parts(exact(a))[0]
        low, high = interval(cx.graph.model.known, top)
        return 1 if low > 0 else -1 if high < 0 else symbolic.dim_max(symbolic.dim_min(top, 1), -1)

    out: Array = _elementwise(signed)(cx, xs)
    return out


def _sum(cx: Context, xs: list[Array]) -> Array:
    out = xs[0]
    for x in xs[1:]:
        out = _elementwise(add)(cx, [out, x])
    return out


ARITHMETIC: dict[str, Rule] = {
    "Add": _elementwise(add), "Sub": _elementwise(lambda a, b: add(a, negate(b))), "Mul": _elementwise(multiply),
    "Div": _divide, "Mod": _mod, "Neg": _elementwise(negate), "Floor": _elementwise(_round(False)),
    "Ceil": _elementwise(_round(True)), "Cast": _cast, "CastLike": _cast,
    "Equal": _compare("eq"), "Less": _compare("lt"), "Greater": _compare("gt"), "LessOrEqual": _compare("le"),
    "GreaterOrEqual": _compare("ge"), "Where": _where, "Max": _extreme(symbolic.dim_max),
    "Min": _extreme(symbolic.dim_min), "Sum": _sum,
    "Not": _elementwise(_not), "And": _elementwise(_and), "Or": _elementwise(_or), "Abs": _abs, "Sign": _sign,
    "Clip": _clip,
}

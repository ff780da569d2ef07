"""Numbers of shape arithmetic: dims, and dims divided by what does not divide them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from xcc import symbolic
from xcc.bounds import Undecided
from xcc.symbolic import Dim, Expr

__all__ = ["Number", "Ratio", "add", "exact", "is_negative", "multiply", "negate", "parts", "ratio", "whole"]


@dataclass(frozen=True)
class Ratio:
    """A dim divided by a positive dim that does not divide it: a float in shape arithmetic."""

    top: Dim
    bottom: Dim


Number = Dim | float | Fraction | Ratio


def exact(x: Number) -> Dim | Fraction | Ratio:
    """Floats as fractions: 0.7, and the f32 nearest to it, are 7/10. Undecided for those near to no small fraction."""
    if isinstance(x, float):
        f = Fraction(x)
        if f.denominator > 1 << 12:
            f = f.limit_denominator(1 << 12)
            if np.float32(float(f)) != np.float32(x):
                raise Undecided
        return int(f) if f.denominator == 1 else f
    return x


def multiply(a: Number, b: Number) -> Number:
    a, b = exact(a), exact(b)
    if isinstance(a, Expr | int) and isinstance(b, Expr | int):
        return a * b
    (ta, ba), (tb, bb) = parts(a), parts(b)
    return ratio(ta * tb, ba * bb)


def ratio(top: Dim, bottom: Dim) -> Dim | Ratio:
    """top / bottom: a dim where it is one."""
    return symbolic.floordiv(top, bottom) if symbolic.mod(top, bottom) == 0 else Ratio(top, bottom)


def add(a: Number, b: Number) -> Number:
    a, b = exact(a), exact(b)
    if isinstance(a, Expr | int) and isinstance(b, Expr | int):
        return a + b
    (ta, ba), (tb, bb) = parts(a), parts(b)
    return ratio(ta * bb + tb * ba, ba * bb)


def parts(x: Number) -> tuple[Dim, Dim]:
    """Numerator and denominator."""
    if isinstance(x, Ratio):
        return x.top, x.bottom
    if isinstance(x, Fraction):
        return x.numerator, x.denominator
    return whole(x), 1


def is_negative(a: Dim) -> Dim:
    """1 where `a` is below 0, else 0."""
    return symbolic.dim_min(1, symbolic.dim_max(a * -1, 0))


def negate(a: Number) -> Dim | Ratio:
    top, bottom = parts(exact(a))
    return top * -1 if bottom == 1 else Ratio(top * -1, bottom)


def whole(x: Number) -> Dim:
    """A dim; Undecided for any other number."""
    x = exact(x)
    if isinstance(x, Expr | int):
        return x
    raise Undecided

"""Torch's symbolic sizes (sympy) as text of :mod:`xcc.symbolic`."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce

import sympy

from xcc import symbolic
from xcc.symbolic import Dim

__all__ = ["NoSize", "dim_of"]


class NoSize(ValueError):
    """The expression is no integer expression of sizes; it must be computed as numbers are."""


def dim_of(expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim]) -> Dim:
    """`expr` (an int, or sympy's) with what is `known` put in; NoSize where it holds what sizes have not."""
    if isinstance(expr, int):
        return int(expr)
    if expr in known:
        return known[expr]
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return symbolic.sym(expr.name)
    kind = type(expr).__name__
    if kind in _ROUNDED:
        return _rounded(kind, expr.args[0], known)
    operands = [dim_of(a, known) for a in expr.args] if not isinstance(expr, sympy.Pow) else []
    if isinstance(expr, sympy.Add):
        return reduce(lambda a, b: a + b, operands)
    if isinstance(expr, sympy.Mul):
        return symbolic.product(operands)
    if isinstance(expr, sympy.Pow):
        return _power(expr, known)
    if kind == "Abs":
        return symbolic.dim_max(operands[0], -1 * operands[0])
    if kind in _VARIADIC:
        return reduce(_VARIADIC[kind], operands)
    if kind in _BINARY and len(operands) == 2:
        return _BINARY[kind](*operands)
    if kind == "ModularIndexing":
        return symbolic.mod(symbolic.floordiv(operands[0], operands[1]), operands[2])
    raise NoSize(str(expr))


def _rounded(kind: str, expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim]) -> Dim:
    """A float expression rounded to a whole number: a quotient, or the square root of one, which rounds as that of the
    quotient rounded alike does."""
    radicand, down = _radicand(expr), kind in ("FloorToInt", "TruncToInt")
    if radicand is None:
        try:
            return _ROUNDED[kind](*_ratio(expr, known, down))
        except NoSize:
            return _scaled(kind, expr, known)
    top, bottom = _ratio(radicand, known, down)
    if kind == "RoundToInt":
        if bottom != 1:
            raise NoSize(str(expr))
        return symbolic.floordiv(symbolic.root(4 * top) + 1, 2)     # no root is half way between two numbers
    if kind == "CeilToInt":
        above = symbolic.ceildiv(top, bottom)
        return symbolic.dim_min(above, 1) + symbolic.root(above - 1)
    return symbolic.root(symbolic.floordiv(top, bottom))


def _scaled(kind: str, expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim]) -> Dim:
    """A float times a whole number, rounded as f64 has it."""
    whole = _whole(expr.args[1]) if isinstance(expr, sympy.Mul) and len(expr.args) == 2 else None
    if whole is None or not expr.args[0].is_Float or kind == "RoundToInt":
        raise NoSize(str(expr))
    factor, number = float(expr.args[0]), dim_of(whole, known)
    below, above = symbolic.scaled(number, _bits(factor)), -1 * symbolic.scaled(number, _bits(-factor))
    if kind == "TruncToInt" and not (factor > 0 and whole.is_nonnegative):
        return symbolic.dim_max(below, 0) + symbolic.dim_min(above, 0)
    return above if kind == "CeilToInt" else below


def _bits(number: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def _nearest(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded as Python does: what is half way between two numbers to the even one."""
    near = symbolic.floordiv(2 * a + b, 2 * b)
    if isinstance(b, int) and b % 2:
        return near
    return near - symbolic.is_equal(symbolic.mod(2 * a + b, 2 * b), 0) * symbolic.mod(near, 2)


def _radicand(expr: sympy.Expr) -> sympy.Expr:
    """Of what a float expression is the square root; None where it is none."""
    kind = type(expr).__name__
    if kind == "FloatPow" and expr.args[1] == 0.5 or kind == "OpaqueUnaryFn_sqrt":
        return expr.args[0]
    return None


def _ratio(expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim], down: bool) -> tuple[Dim, Dim]:
    """A float expression as numerator and denominator of what rounds (`down`: to the whole number below) alike."""
    kind = type(expr).__name__
    if kind == "IntTrueDiv":
        return dim_of(expr.args[0], known), dim_of(expr.args[1], known)
    if kind == "FloatTrueDiv":
        (top, under), (bottom, over) = (_exact(a, known) for a in expr.args)
        sign = -1 if isinstance(bottom, int) and bottom < 0 else 1
        return top * (over * sign), bottom * (under * sign)
    if isinstance(expr, sympy.Mul):
        factor = _factor(expr, down)
        if factor is not None:
            return symbolic.product((factor.numerator, _ratio(expr.args[1], known, down)[0])), factor.denominator
        if any(a.is_Float and Fraction(float(a)).denominator > _FINEST for a in expr.args):
            raise NoSize(str(expr))
        parts = [_ratio(a, known, down) for a in expr.args]
        return symbolic.product(p[0] for p in parts), symbolic.product(p[1] for p in parts)
    return _exact(expr, known)


def _exact(expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim]) -> tuple[Dim, int]:
    """A float expression that f64 does not round, a sum or product of sizes and fractions of powers of 2, as numerator
    and denominator."""
    if expr.is_Float and Fraction(float(expr)).denominator <= _FINEST:
        return Fraction(float(expr)).as_integer_ratio()
    if isinstance(expr, sympy.Add | sympy.Mul) and not expr.is_integer:
        terms = [_exact(a, known) for a in expr.args]
        whole = math.prod(bottom for _, bottom in terms)
        if isinstance(expr, sympy.Mul):
            return symbolic.product(top for top, _ in terms), whole
        return reduce(lambda a, b: a + b, (top * (whole // bottom) for top, bottom in terms)), whole
    if type(expr).__name__ == "IntTrueDiv" and expr.args[1] in _POWERS:
        return dim_of(expr.args[0], known), int(expr.args[1])
    number = _whole(expr)
    if number is None or expr.is_Float:
        raise NoSize(str(expr))
    return dim_of(number, known), 1


def _factor(expr: sympy.Expr, down: bool) -> Fraction | None:
    """What `expr`, a factor times a size, is a multiple of: 6/5 for the float 1.2; None where they do not agree.

        floor(1.2 * n) = 6n // 5        but        floor(0.7 * n) = 7n // 10 - 1, of n = 730

    For a multiple n of the denominator the product of floats must be a whole number, too, or more than it where it is
    rounded down: so it is where the float is as close to the fraction as half a step of the number before, or not
    below. Other products are further from whole numbers than rounding moves them, as long as all are small.
    """
    if len(expr.args) != 2 or not expr.args[0].is_Float or _whole(expr.args[1]) is None:
        return None
    exact = Fraction(float(expr.args[0]))
    near = exact.limit_denominator(_FINEST)
    if not 0 < near < _LARGEST:
        return None
    same = abs(exact - near) <= near / (1 << 54) or (down and exact > near and _whole(expr.args[1]).is_nonnegative)
    return near if same else None


def _whole(expr: sympy.Expr) -> sympy.Expr:
    """The whole number that a float expression is, None where it is none."""
    if type(expr).__name__ == "ToFloat":
        return expr.args[0]
    return expr if expr.is_integer else None


def _power(expr: sympy.Expr, known: Mapping[sympy.Symbol, Dim]) -> Dim:
    base, exponent = expr.args
    if not exponent.is_Integer or exponent < 0:
        raise NoSize(str(expr))
    return symbolic.product([dim_of(base, known)] * int(exponent))


_ROUNDED: dict[str, Callable[[Dim, Dim], Dim]] = {"CeilToInt": symbolic.ceildiv, "FloorToInt": symbolic.floordiv,
                                                 "RoundToInt": _nearest, "TruncToInt": symbolic.truncdiv}
_POWERS = [1 << n for n in range(13)]
_FINEST, _LARGEST = 1 << 12, 1 << 6      # of factors: with sizes below 2^31, floats tell their products apart
_VARIADIC: dict[str, Callable[[Dim, Dim], Dim]] = {"Max": symbolic.dim_max, "Min": symbolic.dim_min}
_BINARY: dict[str, Callable[[Dim, Dim], Dim]] = {
    "FloorDiv": symbolic.floordiv, "CleanDiv": symbolic.floordiv, "CeilDiv": symbolic.ceildiv, "Mod": symbolic.mod,
    "PythonMod": symbolic.mod}

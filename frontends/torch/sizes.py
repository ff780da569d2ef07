"""Torch's symbolic sizes (sympy) as text of :mod:`xcc.symbolic`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy

from xcc import symbolic
from xcc.symbolic import Dim

__all__ = ["NoSize", "dim_of"]


class NoSize(ValueError):
    """The expression is no integer expression of sizes; it must be computed as numbers are."""


def dim_of(expr: Any, known: Mapping[Any, Dim]) -> Dim:
    """`expr` (an int, or sympy's) with what is `known` put in; NoSize where it holds what sizes have not."""
    if isinstance(expr, int):
        return int(expr)
    if expr in known:
        return known[expr]
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return symbolic.sym(expr.name)
    if type(expr).__name__ in _ROUNDED:
        return _ROUNDED[type(expr).__name__](*_ratio(expr.args[0], known))
    operands = [dim_of(a, known) for a in expr.args] if not isinstance(expr, sympy.Pow) else []
    kind = type(expr).__name__
    if isinstance(expr, sympy.Add):
        return reduce(lambda a, b: a + b, operands)
    if isinstance(expr, sympy.Mul):
        return symbolic.product(operands)
    if isinstance(expr, sympy.Pow):
        return _power(expr, known)
    if kind in _VARIADIC:
        return reduce(_VARIADIC[kind], operands)
    if kind in _BINARY and len(operands) == 2:
        return _BINARY[kind](*operands)
    if kind == "ModularIndexing":
        return symbolic.mod(symbolic.floordiv(operands[0], operands[1]), operands[2])
    raise NoSize(str(expr))


def _ratio(expr: Any, known: Mapping[Any, Dim]) -> tuple[Dim, Dim]:
    """A float expression as numerator and denominator, where it is exactly one of whole numbers."""
    kind = type(expr).__name__
    if kind == "IntTrueDiv":
        return dim_of(expr.args[0], known), dim_of(expr.args[1], known)
    if kind == "ToFloat":
        return dim_of(expr.args[0], known), 1
    if expr.is_Float:
        exact = Fraction(float(expr))
        if exact.denominator <= _FINEST:
            return exact.numerator, exact.denominator
    if isinstance(expr, sympy.Mul):
        parts = [_ratio(a, known) for a in expr.args]
        return symbolic.product(p[0] for p in parts), symbolic.product(p[1] for p in parts)
    if expr.is_integer:
        return dim_of(expr, known), 1
    raise NoSize(str(expr))


def _power(expr: Any, known: Mapping[Any, Dim]) -> Dim:
    base, exponent = expr.args
    if not exponent.is_Integer or exponent < 0:
        raise NoSize(str(expr))
    return symbolic.product([dim_of(base, known)] * int(exponent))


_ROUNDED: dict[str, Callable[[Dim, Dim], Dim]] = {"CeilToInt": symbolic.ceildiv, "FloorToInt": symbolic.floordiv,
                                                 "TruncToInt": symbolic.truncdiv}
_FINEST = 1 << 12     # a factor such as 1.7 has 2^52 below: the product of floats is rounded, and no quotient
_VARIADIC: dict[str, Callable[[Dim, Dim], Dim]] = {"Max": symbolic.dim_max, "Min": symbolic.dim_min}
_BINARY: dict[str, Callable[[Dim, Dim], Dim]] = {
    "FloorDiv": symbolic.floordiv, "CleanDiv": symbolic.floordiv, "CeilDiv": symbolic.ceildiv, "Mod": symbolic.mod,
    "PythonMod": symbolic.mod}

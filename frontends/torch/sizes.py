"""Torch's symbolic sizes (sympy) as text of :mod:`xcc.symbolic`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _power(expr: Any, known: Mapping[Any, Dim]) -> Dim:
    base, exponent = expr.args
    if not exponent.is_Integer or exponent < 0:
        raise NoSize(str(expr))
    return symbolic.product([dim_of(base, known)] * int(exponent))


_VARIADIC: dict[str, Callable[[Dim, Dim], Dim]] = {"Max": symbolic.dim_max, "Min": symbolic.dim_min}
_BINARY: dict[str, Callable[[Dim, Dim], Dim]] = {
    "FloorDiv": symbolic.floordiv, "CleanDiv": symbolic.floordiv, "CeilDiv": symbolic.ceildiv, "Mod": symbolic.mod,
    "PythonMod": symbolic.mod}

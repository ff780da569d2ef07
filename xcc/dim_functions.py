"""More functions of symbolic dimensions than quotients and remainders. Use them as `xcc.symbolic`."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import reduce
from math import floor, gcd, isqrt

from xcc.dim_expr import Dim, Expr, collapse, floordiv, function, mod, quotient

__all__ = ["FUNCTIONS", "NUMBERS", "ceildiv", "dim_max", "dim_min", "divisor", "float_of", "is_equal", "root",
           "scaled", "truncdiv"]


def truncdiv(a: Dim, b: Dim) -> Dim:
    """Division rounded towards 0, as ONNX and C divide integers."""
    if isinstance(a, int) and isinstance(b, int):
        return _truncated(a, b)
    if isinstance(b, int) and isinstance(a, Expr):
        if b < 0:
            return truncdiv(a * -1, -b)
        common = reduce(gcd, [c for _, c in a.terms], b)
        if common == b:
            return floordiv(a, b)
        if a.terms[0][1] < 0:
            return truncdiv(a * -1, b) * -1
        inner = a.terms[0][0][0] if len(a.terms) == 1 and a.terms[0][1] == 1 and len(a.terms[0][0]) == 1 else ("",)
        if len(inner) == 3 and inner[0] == "truncdiv" and isinstance(inner[2], int):
            return truncdiv(inner[1], inner[2] * b)
        return function("truncdiv", collapse({m: c // common for m, c in a.terms}), b // common)
    return quotient(truncdiv, a, b) if isinstance(b, Expr) else function("truncdiv", a, b)


def _truncated(a: int, b: int) -> int:
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def ceildiv(a: Dim, b: Dim) -> Dim:
    return floordiv(a + (b - 1), b)


def is_equal(a: Dim, b: Dim) -> Dim:
    """1 where `a` is `b`, else 0."""
    return 1 - dim_min(1, dim_max(a - b, b - a))


def dim_max(a: Dim, b: Dim) -> Dim:
    diff = a - b
    return function("max", *sorted((a, b), key=str)) if isinstance(diff, Expr) else a if diff >= 0 else b


def dim_min(a: Dim, b: Dim) -> Dim:
    diff = a - b
    return function("min", *sorted((a, b), key=str)) if isinstance(diff, Expr) else b if diff >= 0 else a


def root(a: Dim, degree: Dim = 2) -> Dim:
    """The square root of `a`, rounded down; 0 of a number below 0. Other degrees than 2 there are none."""
    if degree != 2:
        raise ValueError(f"a root of degree {degree}")
    return _rooted(a, 2) if isinstance(a, int) else function("root", a, degree)


def _rooted(a: int, _degree: int) -> int:
    return isqrt(max(a, 0))


def divisor(a: Dim, most: Dim) -> Dim:
    """The largest divisor of `a` up to `most`; 1 where either is less than 1."""
    return _divisor(a, most) if isinstance(a, int) and isinstance(most, int) else function("divisor", a, most)


def _divisor(a: int, most: int) -> int:
    return next((d for d in range(min(a, most), 1, -1) if a % d == 0), 1)


def scaled(a: Dim, bits: Dim) -> Dim:
    """`a` times a float, rounded down, as f64 has it: ``floor(0.7 * 730)`` is 510. `bits` are those of the float."""
    return _scaled(a, bits) if isinstance(a, int) and isinstance(bits, int) else function("scaled", a, bits)


def _scaled(a: int, bits: int) -> int:
    return floor(a * float_of(bits))


def float_of(bits: int) -> float:
    """The f64 that has these bits, as a signed number."""
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


FUNCTIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": floordiv, "truncdiv": truncdiv, "mod": mod, "max": dim_max, "min": dim_min, "ceildiv": ceildiv,
    "root": root, "scaled": scaled, "divisor": divisor}
"""The functions in an expression, by the names in its text."""
NUMBERS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv, "truncdiv": _truncated, "mod": operator.mod, "max": max, "min": min,
    "root": _rooted, "scaled": _scaled, "divisor": _divisor}
"""The same of numbers."""

"""`math`: each function in float32 at least, rounded once to the type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.interpreter.registry import pure

Array = np.ndarray[Any, Any]


def _erf(a: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(a)


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(*operands: Array) -> Array:
        dtype = operands[0].dtype
        return function(*(o.astype(np.float64) for o in operands)).astype(dtype)
    return run


def _round_half_away(a: Array) -> Array:
    return np.copysign(np.floor(np.abs(a) + 0.5), a)


_FLOAT: dict[str, Callable[..., Array]] = {
    "absf": np.abs, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "roundeven": np.rint,
    "round": _round_half_away, "copysign": np.copysign,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "cbrt": np.cbrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "powf": np.power, "erf": _erf, "erfc": lambda a: 1 - _erf(a),
    "fma": lambda a, b, c: a * b + c,
}
for _name, _function in _FLOAT.items():
    pure(f"math.{_name}", _wide(_function))

pure("math.absi", np.abs)
pure("math.isnan", np.isnan)
pure("math.isinf", np.isinf)
pure("math.isfinite", np.isfinite)


def _fpowi(a: Array, b: Array) -> Array:
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _leading_zeros(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    count = np.full(a.shape, bits, a.dtype)
    value = a.astype(np.uint64) if a.dtype.itemsize == 8 else a.astype(np.int64) & ((1 << bits) - 1)
    for bit in range(bits):
        count = np.where((value >> bit) & 1, a.dtype.type(bits - 1 - bit), count)
    return count


def _ones(a: Array) -> Array:
    return np.bitwise_count(a.view(f"u{a.dtype.itemsize}")).astype(a.dtype)


pure("math.fpowi", _fpowi)
pure("math.ctlz", _leading_zeros)
pure("math.ctpop", _ones)

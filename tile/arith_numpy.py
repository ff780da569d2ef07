"""arith and math on numpy arrays: integers are signed arrays of their width, i1 is bool, index is int64."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects.tile.types import TileType, is_float
from xcc.dialects.xt.fields import decode_dense
from xcc.dialects.xt.types import numpy_dtype

__all__ = ["elementwise"]

Array = np.ndarray[Any, Any]

_erf = np.vectorize(erf, otypes=[np.float64])


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype.name}") if x.dtype.kind == "i" else x


def _toward_zero(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    quotient = np.floor_divide(np.abs(a), np.abs(safe))
    return (quotient * np.sign(a) * np.sign(safe)).astype(a.dtype)


def _safe(b: Array) -> Array:
    return np.where(b == 0, np.ones_like(b), b)


def _shift(by: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, n: by(a, np.clip(_unsigned(n), 0, a.dtype.itemsize * 8 - 1).astype(a.dtype))


def _by_bits(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: f(_unsigned(a), _unsigned(b)).view(a.dtype) if a.dtype != bool else f(a, b)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
    "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "maxsi": np.maximum, "minsi": np.minimum, "maxui": _by_bits(np.maximum),
    "minui": _by_bits(np.minimum), "floordivsi": lambda a, b: np.floor_divide(a, _safe(b)), "divsi": _toward_zero,
    "ceildivsi": lambda a, b: -np.floor_divide(-a, _safe(b)), "remsi": lambda a, b: a - _toward_zero(a, b) * b,
    "divui": _by_bits(lambda a, b: a // _safe(b)), "remui": _by_bits(lambda a, b: a % _safe(b)),
    "ceildivui": _by_bits(lambda a, b: -(-a.astype(object) // _safe(b)).astype(a.dtype)),
    "shli": _shift(np.left_shift), "shrsi": _shift(np.right_shift),
    "shrui": _shift(lambda a, n: np.right_shift(_unsigned(a), _unsigned(n)).view(a.dtype)),
    "atan2": np.arctan2, "powf": np.power, "copysign": np.copysign,
}
_UNARY: dict[str, Callable[[Array], Array]] = {
    "negf": np.negative, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "erf": _erf, "erfc": lambda x: 1 - _erf(x), "absf": np.abs, "absi": np.abs,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "roundeven": np.rint, "cbrt": np.cbrt, "ctpop": lambda x: np.bitwise_count(_unsigned(x)),
}
_ORDER = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
          "ge": np.greater_equal}
_INTEGER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOATING = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
             "true")


def _compare(op: Operation, a: Array, b: Array) -> Array:
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    if op.name == "arith.cmpi":
        name = _INTEGER[number]
        if name[0] == "u" or a.dtype == bool:
            a, b = _unsigned(a), _unsigned(b)
        return _ORDER[name if len(name) == 2 else name[1:]](a, b)
    name = _FLOATING[number]
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("false", "true", "ord", "uno"):
        return {"false": unordered & False, "true": unordered | True, "ord": ~unordered, "uno": unordered}[name]
    made = _ORDER[name[1:]](a, b)
    return made & ~unordered if name[0] == "o" else made | unordered


def _cast(op: Operation, x: Array, dtype: np.dtype[Any]) -> Array:
    name = op.name.removeprefix("arith.")
    if name == "bitcast":
        return np.asarray(x).view(dtype)
    if name in ("extui", "uitofp", "index_castui"):
        return _unsigned(np.asarray(x)).astype(dtype)
    if name == "fptoui":
        return np.asarray(x).astype(f"u{dtype.name}").view(dtype)
    if name in ("extsi", "sitofp") and np.asarray(x).dtype.kind == "b":
        return -np.asarray(x).astype(np.int8).astype(dtype)
    if name == "trunci" and dtype.kind == "b":
        return (np.asarray(x) & 1).astype(bool)
    return np.asarray(x).astype(dtype)


def _constant(op: Operation, t: TileType, dtype: np.dtype[Any]) -> Array:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if t.dtype == "index" or attribute.is_splat:
            splat = attribute.get_splat_value() if attribute.is_splat else None
            if splat is not None:
                return np.full(t.shape, _number(splat, dtype), dtype)
            return np.array([_number(x, dtype) for x in attribute], dtype).reshape(t.shape)
        kind = ir.RankedTensorType.get(list(t.shape), ir.Type.parse(t.dtype))
        text = f"{str(attribute).split(' : ')[0]} : {kind}"
        return decode_dense(ir.Attribute.parse(text)).astype(dtype)
    return np.asarray(_number(attribute, dtype)).astype(dtype)


def _number(attribute: Any, dtype: np.dtype[Any]) -> Any:
    value = getattr(attribute, "value", attribute)
    return bool(value) if dtype.kind == "b" else value


def elementwise(op: Operation, values: list[Array]) -> list[Array]:
    """The results of one op of arith or math; UserError for one that is not known."""
    name = op.name.split(".", 1)[1]
    t = TileType.of(op.results[0])
    dtype = np.dtype(np.int64) if t.dtype == "index" else numpy_dtype(t.dtype)
    if name == "mului_extended" or name == "mulsi_extended":
        return _extended(name, *values)
    if name == "constant":
        made: Array = _constant(op, t, dtype)
    elif name in ("cmpi", "cmpf"):
        made = _compare(op, *values)
    elif name == "select":
        made = np.where(*values)
    elif name == "fma":
        a, b, c = (np.asarray(v).astype(np.float64) for v in values)
        made = a * b + c
    elif name in _BINARY:
        made = _BINARY[name](np.asarray(values[0]), np.asarray(values[1]))
    elif name in _UNARY:
        x = np.asarray(values[0])
        made = _UNARY[name](x.astype(np.float32) if is_float(t.dtype) and x.dtype.itemsize < 4 else x)
    elif len(values) == 1:
        return [_shaped(_cast(op, values[0], dtype), dtype, t)]
    else:
        raise UserError(f"the evaluation of tile programs does not know {op.name}")
    return [_shaped(made, dtype, t)]


def _extended(name: str, a: Array, b: Array) -> list[Array]:
    x, y = np.asarray(a), np.asarray(b)
    wide = (_unsigned(x), _unsigned(y)) if name[3] == "u" else (x, y)
    full = wide[0].astype(object) * wide[1].astype(object)
    bits, unsigned = x.dtype.itemsize * 8, np.dtype(f"u{x.dtype.name}")
    parts = [np.asarray(full) & (1 << bits) - 1, (np.asarray(full) >> bits) & (1 << bits) - 1]
    return [np.asarray(p).astype(unsigned).view(x.dtype) if x.ndim else np.asarray(p).astype(unsigned).view(x.dtype)[()]
            for p in parts]


def _shaped(made: Array, dtype: np.dtype[Any], t: TileType) -> Array:
    out = np.asarray(made)
    out = out if out.dtype == dtype else out.astype(dtype)
    return out if t.shape else out[()]

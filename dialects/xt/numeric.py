"""numpy helpers for `evaluate`: narrow floats compute in f32, integers wrap, NaN and division rules are fixed."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from xcc.dialects.xt.types import dtype_name, is_float, is_integer, is_signed, numpy_dtype, width

Array = np.ndarray[Any, Any]
NARROW = ("f16", "bf16", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E8M0FNU", "f4E2M1FN")


def in_float(f: Callable[..., Any], *xs: Array, dtype: str | None = None) -> Array:
    """`f` computed in f32 (f64 for f64) and rounded once to the operands' element type."""
    name = dtype or dtype_name(xs[0].dtype)
    compute = np.float64 if name == "f64" else np.float32
    with np.errstate(all="ignore"):
        wide = [np.asarray(x).astype(compute, copy=False) for x in xs]
        return np.asarray(f(*wide)).astype(numpy_dtype(name), copy=False)


def float_limits(name: str) -> tuple[float, float]:
    """The least and largest finite value of a float type."""
    info: Any = ml_dtypes.finfo(numpy_dtype(name))  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)


def integer_limits(name: str) -> tuple[int, int]:
    bits = width(name)
    if name == "i1":
        return 0, 1
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(name) else (0, (1 << bits) - 1)


def lowest(name: str) -> float:
    """The neutral value of max: -inf or the least integer."""
    return -np.inf if is_float(name) else integer_limits(name)[0]


def highest(name: str) -> float:
    return np.inf if is_float(name) else integer_limits(name)[1]


def cast(x: Array, to: str, saturate: bool = False) -> Array:
    """Conversion by value. Floats to integers truncate, clamp to the target's range and turn NaN into 0;
    integers wrap (or clamp when `saturate`); anything not zero is true; floats round to nearest even and, when
    `saturate`, clamp to the finite range."""
    source, target = dtype_name(x.dtype), numpy_dtype(to)
    if source == to:
        return x
    with np.errstate(all="ignore"):
        if to == "i1":
            return np.asarray(x != np.zeros((), x.dtype))
        if is_float(source) and is_float(to):
            wide = x.astype(np.float64 if "f64" in (source, to) else np.float32)
            if saturate:
                low, high = float_limits(to)
                wide = np.where(np.isnan(wide), wide, np.clip(wide, low, high))
            return np.asarray(wide.astype(target))
        if is_float(source):
            return _float_to_integer(x.astype(np.float64), to)
        if is_integer(to) and saturate and source != "i1":
            low, high = integer_limits(to)
            info = integer_limits(source)
            x = np.clip(x, max(low, info[0]), min(high, info[1]))
        return np.asarray(wrap(x, to) if is_integer(to) else x.astype(np.float64 if to == "f64" else np.float32).astype(
            target))


def _float_to_integer(wide: Array, to: str) -> Array:
    low, high = integer_limits(to)
    whole = np.trunc(np.where(np.isnan(wide), 0.0, wide))
    middle = np.where((whole > low) & (whole < high), whole, 0.0).astype(np.uint64 if low == 0 else np.int64)
    out = np.where(whole <= low, np.array(low, middle.dtype), middle)
    out = np.where(whole >= high, np.array(high, middle.dtype), out)
    return np.asarray(out.astype(numpy_dtype(to)))


def wrap(x: Array, to: str) -> Array:
    """Integer (or bool) `x` modulo 2^bits into the integer type `to`."""
    target = numpy_dtype(to)
    if width(to) >= 8:
        return np.asarray(x.astype(target))
    bits = width(to)
    low = np.asarray(x.astype(np.int64)) & ((1 << bits) - 1)
    if is_signed(to):
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return np.asarray(low.astype(target))


def one_nan(x: Array) -> Array:
    """`x` with one NaN for all: which bits a computed one has differs by CPU."""
    if not is_float(dtype_name(x.dtype)):
        return x
    nan = np.isnan(x)
    return np.where(nan, np.array(np.nan).astype(x.dtype), x) if nan.any() else x

"""The numpy meaning of the element-wise ops that numpy defines otherwise, or not for all our types."""

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.dialects.xt import elementary
from xcc.dialects.xt.numeric import NARROW, Array, in_float, wrap
from xcc.dialects.xt.types import dtype_name, is_float, is_signed, width


def wide(f: Callable[..., Any]) -> Callable[..., Array]:
    """`f` computed in f32 for the narrow floats."""
    return lambda *xs: in_float(f, *xs)


def same_type(f: Callable[..., Any], *xs: Array) -> Array:
    """`f` of `xs`, in the element type of `xs`; narrow floats through f32, narrow integers through i64."""
    name = dtype_name(xs[0].dtype)
    with np.errstate(all="ignore"):
        if name in NARROW and f not in (next_after,):
            return in_float(f, *xs)
        if not is_float(name) and name != "i1" and width(name) < 8:
            return wrap(np.asarray(f(*[x.astype(np.int64) for x in xs])), name)
        out = np.asarray(f(*xs))
        return out if out.dtype == xs[0].dtype else out.astype(xs[0].dtype)


def _integers(x: Array) -> bool:
    return not is_float(dtype_name(x.dtype))


def divide(a: Array, b: Array) -> Array:
    if not _integers(a):
        return np.asarray(np.divide(a, b))
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = a // safe
    if is_signed(dtype_name(a.dtype)):
        quotient = quotient + (((a % safe) != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, np.zeros_like(a), quotient)


def rem(a: Array, b: Array) -> Array:
    if not _integers(a):
        return np.asarray(np.fmod(a, b))
    a, b = np.broadcast_arrays(a, b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def mod(a: Array, b: Array) -> Array:
    if not _integers(a):
        r = np.fmod(a, b)
        return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)
    a, b = np.broadcast_arrays(a, b)
    return np.where(b == 0, np.zeros_like(a), np.mod(a, np.where(b == 0, np.ones_like(b), b)))


def power(a: Array, b: Array) -> Array:
    if not _integers(a):
        return elementary.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    positive = np.power(a, np.maximum(b, 0))
    if not is_signed(dtype_name(a.dtype)):
        return positive
    odd = (b & 1) == 1
    negative = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0)).astype(a.dtype)
    return np.where(b < 0, negative, positive)


def maximum(a: Array, b: Array) -> Array:
    return np.where(a == b, b, np.maximum(a, b))    # zeros of either sign are equal: which one CPUs give differs


def minimum(a: Array, b: Array) -> Array:
    return np.where(a == b, b, np.minimum(a, b))


def shift_left(a: Array, b: Array) -> Array:
    bits = width(dtype_name(a.dtype))
    a, b = np.broadcast_arrays(a, b)
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.left_shift(a, np.where(inside, b, np.zeros_like(b))), np.zeros_like(a))


def shift_right(a: Array, b: Array) -> Array:
    name = dtype_name(a.dtype)
    a, b = np.broadcast_arrays(a, b)
    inside = (b >= 0) & (b < width(name))
    if is_signed(name):
        return np.right_shift(a, np.where(inside, b, np.full_like(b, width(name) - 1)))
    return np.where(inside, np.right_shift(a, np.where(inside, b, np.zeros_like(b))), np.zeros_like(a))


def next_after(a: Array, b: Array) -> Array:
    if dtype_name(a.dtype) in ("f16", "f32", "f64"):
        return np.asarray(np.nextafter(a, b))
    import ml_dtypes

    return np.asarray(getattr(ml_dtypes, "nextafter", np.nextafter)(a, b))

"""Small builders that the decompositions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import SupportsFloat

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim, product


def const(value: SupportsFloat, like: Value) -> Value:
    """A scalar constant in the element type of the value `like`."""
    return xt.scalar(value, TensorType.of(like).dtype)


def shape(value: Value) -> tuple[Dim, ...]:
    return TensorType.of(value).shape


def dtype(value: Value) -> str:
    return TensorType.of(value).dtype


def convert(value: Value, to: str) -> Value:
    return value if dtype(value) == to else xt.convert(value, dtype=to)


def widened(f: Callable[..., Value], x: Value, *rest: Value | None) -> Value:
    """f on operands in f32 where x is narrower; the result in x's element type."""
    if dtype(x) not in NARROW:
        return f(x, *rest)
    out = f(*(None if v is None else convert(v, "f32") for v in (x, *rest)))
    return convert(out, dtype(x))


def total(x: Value, axes: Sequence[int]) -> Value:
    return xt.reduce(x, kind="sum", axes=axes, keepdims=True)


def mean(x: Value, axes: Sequence[int]) -> Value:
    """The mean over `axes`, which stay as dims of 1."""
    return xt.mul(total(x, axes), inverse_count(product(shape(x)[d] for d in axes), x))


def inverse_count(count: Dim, like: Value) -> Value:
    """1 / count as a scalar."""
    if isinstance(count, int):
        return const(1.0 / count if count else float("nan"), like)
    return xt.reciprocal(xt.convert(xt.dim(count), dtype=dtype(like)))


def dim_scalar(value: Dim, to: str) -> Value:
    """A dim as a scalar of the element type `to`."""
    return xt.scalar(value, to) if isinstance(value, int) else convert(xt.dim(value), to)


def wrapped(index: Value, size: Dim) -> Value:
    """i64 indices into a dim of `size`: negative ones count from the end; the rest is clamped."""
    zero, n = xt.scalar(0, "i64"), dim_scalar(size, "i64")
    index = xt.select(xt.compare(index, zero, direction="lt"), xt.add(index, n), index)
    return xt.maximum(xt.minimum(index, xt.sub(n, xt.scalar(1, "i64"))), zero)


def take(x: Value, axis: int, start: Dim, limit: Dim) -> Value:
    """x[start:limit] along `axis`."""
    dims = shape(x)
    axis %= len(dims)
    return xt.slice_(x, starts=[start if d == axis else 0 for d in range(len(dims))],
                     limits=[limit if d == axis else n for d, n in enumerate(dims)])


def drop(x: Value, axis: int) -> Value:
    """x without `axis`, a dim of 1."""
    return xt.reshape(x, shape=[n for d, n in enumerate(shape(x)) if d != axis % len(shape(x))])


def column(x: Value, axis: int, rank: int) -> Value:
    """The vector x as a tensor of `rank` with its dim at `axis`."""
    return xt.reshape(x, shape=[shape(x)[0] if d == axis % rank else 1 for d in range(rank)])

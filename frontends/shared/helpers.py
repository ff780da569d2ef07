"""Small xt expressions that several families use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import dtype_name
from xcc.symbolic import Dim


def element(x: Value) -> str:
    """The name of an xt value's element type."""
    return dtype_name(xt.element_type_of(x))


def convert(x: Value, dtype: np.dtype[Any] | str) -> Value:
    """`x` with the element type `dtype`; `x` itself when it has it."""
    return x if element(x) == dtype_name(dtype) else xt.convert(x, dtype=dtype_name(dtype))


def scalar(value: float | int | bool, like: Value) -> Value:
    """A rank-0 constant with the element type of `like`."""
    return xt.scalar(value, element(like))


def rank_of(x: Value) -> int:
    return len(xt.shape_of(x))


def full(shape: Sequence[Dim], value: Any, dtype: Any) -> Any:
    """A tensor of `shape` with `value` everywhere."""
    return xt.broadcast(xt.scalar(value, dtype_name(dtype)), shape=tuple(shape))


def unsqueeze(x: Value, axes: Sequence[int]) -> Value:
    """Dims of 1 inserted at `axes` of the result."""
    shape = list(xt.shape_of(x))
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return xt.reshape(x, shape=tuple(shape))


def squeeze(x: Value, axes: Sequence[int]) -> Value:
    """The dims `axes` dropped; they have one element."""
    shape = [d for i, d in enumerate(xt.shape_of(x)) if i not in axes]
    return xt.reshape(x, shape=tuple(shape))


def turned(x: Value) -> Value:
    """The matrices of the last two dims with their rows as columns."""
    rank = rank_of(x)
    return xt.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def along(x: Value, axis: int, rank: int) -> Value:
    """A vector with dims of 1 around it, so that it lies along `axis` of a tensor of `rank`."""
    shape: list[Dim] = [1] * rank
    shape[axis] = xt.shape_of(x)[0]
    return xt.reshape(x, shape=tuple(shape))


def count(x: Value, axes: Sequence[int], dtype: str) -> Value:
    """The number of elements of `axes`, as a scalar of `dtype`."""
    return dim_scalar(symbolic.product(xt.shape_of(x)[a] for a in axes), dtype)


def dim_scalar(value: Dim, dtype: str) -> Value:
    """A dim as a scalar of `dtype`."""
    name = dtype_name(dtype)
    if isinstance(value, int):
        return xt.scalar(value, name)
    return convert(xt.dim(value=value), name)


def any_of(x: Value) -> Value:
    """i1[]: whether any element of an i1 tensor is true."""
    return xt.reduce(x, kind="or", axes=tuple(range(rank_of(x))), keepdims=False)


def mean(x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
    return xt.div(xt.reduce(x, kind="sum", axes=tuple(axes), keepdims=keepdims), count(x, axes, element(x)))


def slice_axis(x: Value, axis: int, start: Dim, limit: Dim) -> Value:
    """``x[start:limit]`` along one axis."""
    shape = xt.shape_of(x)
    starts: list[Dim] = [0] * len(shape)
    limits = list(shape)
    starts[axis], limits[axis] = start, limit
    return xt.slice(x, starts=tuple(starts), limits=tuple(limits))


def with_ones(x: Value, shape: Sequence[Dim | str]) -> Value:
    """`x` with one element along the dims of which `shape` says so, where its own sizes do not tell.

    Of ``min(n, 1)``, which is 1 of all tensors that have elements, torch says so without knowing that this one has.
    """
    for axis, (own, known) in enumerate(zip(xt.shape_of(x), shape, strict=True)):
        x = slice_axis(x, axis, 0, 1) if known == 1 and not _is_one_of_many(own) else x
    return x


def _is_one_of_many(size: Dim) -> bool:
    """Whether a size is 1 where the sizes in it are large, and far apart."""
    return symbolic.evaluate(size, {name: 10 ** (6 * n) for n, name in enumerate(symbolic.symbols_of(size), 1)}) == 1


def split(x: Value, axis: int, sizes: Sequence[Dim]) -> list[Value]:
    """Consecutive parts along `axis`."""
    out, at = [], 0  # type: list[Any], Dim
    for size in sizes:
        out.append(slice_axis(x, axis, at, at + size))
        at = at + size
    return out


def relu(x: Value) -> Value:
    return xt.maximum(x, scalar(0, x))


def clip(x: Value, low: float, high: float) -> Value:
    return xt.minimum(xt.maximum(x, scalar(low, x)), scalar(high, x))


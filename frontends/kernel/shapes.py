"""Functions of kernels that change a tile's shape, or make tiles of nothing."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, convert, element_type, stretch
from xcc.frontends.kernel.types import DTYPES, TileType, broadcast_shapes, promote

__all__ = ["arange", "full", "join", "reshape", "shape_of", "split", "transpose", "with_units", "zeros"]


def shape_of(shape: object) -> tuple[int, ...]:
    """The shape that the user gave, a number or several, known when the kernel is compiled."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    found = []
    for n in given:
        if isinstance(n, (Tile, float)) or not hasattr(n, "__index__"):
            raise error(f"a tile's shape is made of numbers known when the kernel is compiled, not of {n!r}: "
                        "give a number, or an argument that is xcc.constexpr")
        found.append(operator.index(n))
    for n in found:
        if n < 1 or n & (n - 1):
            wide = 1 << max(0, n - 1).bit_length()
            raise error(f"the shape {found}: {n} is no power of two; take the next one, {wide}: what lies outside an "
                        "array reads `other` and is not written")
    return tuple(found)


def full(shape: int | Sequence[int], value: object, dtype: object = None) -> Tile:
    """A tile of one value."""
    x = as_tile(value)
    if x.ndim:
        raise error(f"a tile is filled with a scalar, not with {x.type}")
    if dtype is None and x.type.weak:
        dtype = DTYPES["f32" if x.dtype.is_float else "i64"]
    return stretch(convert(x, x.dtype if dtype is None else element_type(dtype)), shape_of(shape))


def zeros(shape: int | Sequence[int], dtype: object = DTYPES["f32"]) -> Tile:
    """A tile of zeros."""
    return full(shape, False if element_type(dtype).kind == "bool" else 0, dtype)


def arange(start: int, end: int | None = None, dtype: object = DTYPES["i64"]) -> Tile:
    """The integers from `start` (0 where there is one argument) up to `end`."""
    first, last = (0, start) if end is None else (start, end)
    kind = TileType(element_type(dtype), shape_of(last - first))
    if not kind.dtype.is_integer:
        raise error(f"arange makes integers, not {kind.dtype}: convert them with .to()")
    return Tile(kind, machine().op("arange", kind, start=int(first)))


def reshape(x: Tile, *shape: int | Sequence[int]) -> Tile:
    """The elements in row-major order in another shape."""
    wanted = shape_of(shape[0] if len(shape) == 1 else shape)
    if math.prod(wanted) != math.prod(x.shape):
        raise error(f"{x.type} has {math.prod(x.shape)} elements, the shape {list(wanted)} {math.prod(wanted)}")
    kind = x.type.shaped(wanted)
    return x if wanted == x.shape else Tile(kind, machine().op("reshape", kind, x))


def transpose(x: Tile, axes: Sequence[int] | None = None) -> Tile:
    """The dims in the order of `axes`; without them the last two exchanged."""
    if x.ndim < 2 and axes is None:
        raise error(f"{x.type} has no two dims to exchange")
    order = tuple(axes) if axes is not None else (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if sorted(order) != list(range(x.ndim)):
        raise error(f"{list(order)} is no order of the dims of {x.type}")
    kind = x.type.shaped(tuple(x.shape[a] for a in order))
    return Tile(kind, machine().op("transpose", kind, x, order=order))


def join(a: object, b: object) -> Tile:
    """`a` and `b` side by side along a new last dim of size 2: ``join(a, b).reshape(2 * n)`` of tiles of n elements
    alternates between the two."""
    x, y = as_tile(a), as_tile(b)
    dtype, shape = promote(x.type, y.type), broadcast_shapes(x.shape, y.shape)
    if dtype is None or shape is None:
        raise error(f"join({x.type}, {y.type}): " + (
            f"the shapes {list(x.shape)} and {list(y.shape)} do not broadcast" if shape is None else
            "convert one to the type of the other with .to()"))
    kind = TileType(dtype, (*shape, 2))
    return Tile(kind, machine().op("join", kind, stretch(convert(x, dtype), shape), stretch(convert(y, dtype), shape)))


def split(x: Tile) -> tuple[Tile, Tile]:
    """The first and the second of each two elements along the last dim, which has size 2 and is left out."""
    x = as_tile(x)
    if x.shape[-1:] != (2,):
        raise error(f"the last dim of {x.type} has not size 2: .reshape() makes one of each two neighbours")
    kinds = [x.type.shaped(x.shape[:-1])] * 2
    first, second = (Tile(k, d) for k, d in zip(kinds, machine().several("split", kinds, x), strict=True))
    return first, second


def with_units(x: Tile, at: tuple[object, ...]) -> Tile:
    """``x[:, None]``."""
    if sum(i is ... for i in at) == 1:
        left = at.index(...)
        at = (*at[:left], *[slice(None)] * (x.ndim - sum(i is not None for i in at) + 1), *at[left + 1:])
    if any(i is not None and i != slice(None) for i in at) or sum(i is not None for i in at) > x.ndim:
        raise error(f"[] of {x.type} takes `:` for each of its dims and None for a new one: what lies at an index is "
                    "read from an array, with .tile() or .gather()")
    kept = iter(x.shape)
    shape = [1 if i is None else next(kept) for i in at]
    return reshape(x, (*shape, *kept))

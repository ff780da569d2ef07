"""Block-level vectors as grids of machine vectors: what `unroll-vectors` computes with.

A :class:`Tile` of shape (a, b, n) holds a*b*ceil(n / lanes) one-dimensional vectors ("chunks"): the innermost
dimension is cut into pieces of `lanes` elements, the last one possibly shorter. A rank-0 vector is one chunk of
one lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from xcc._mlir import InsertionPoint, Type, Value, ir
from xcc.passes.shared.values import conjunction, dense_constant, extract, index, op, pack, splat, splat_constant, vec

Key = tuple[int, ...]


@lru_cache(maxsize=4096)
def keys(shape: tuple[int, ...], lanes: int) -> tuple[Key, ...]:
    """The keys of a tile's chunks in row-major order: the outer coordinates, then the chunk's number."""
    pieces = -(-shape[-1] // lanes) if shape else 1
    return tuple(itertools.product(*(range(d) for d in shape[:-1]), range(pieces)))


class Tile:
    """An n-D vector as machine vectors. `build` makes a chunk at its first use, where the chunk is not given."""

    def __init__(self, shape: Sequence[int], elem: Type, lanes: int, chunks: dict[Key, Value] | None = None) -> None:
        self.shape = tuple(shape)
        self.elem = elem
        self.lanes = lanes
        self.chunks: dict[Key, Value] = {} if chunks is None else chunks

    @property
    def inner(self) -> int:
        return self.shape[-1] if self.shape else 1

    def keys(self) -> tuple[Key, ...]:
        return keys(self.shape, self.lanes)

    def width(self, key: Key) -> int:
        """Lanes of the chunk at `key`."""
        return min(self.lanes, self.inner - key[-1] * self.lanes)

    def chunk(self, key: Key) -> Value:
        return self.chunks[key]

    def lane(self, at: Key) -> Value:
        """The scalar at full coordinates `at`."""
        inner = at[-1] if at else 0
        return extract(self.chunk(at[:-1] + (inner // self.lanes,)), inner % self.lanes)

    def values(self) -> list[Value]:
        """All chunks in row-major order."""
        return [self.chunk(k) for k in self.keys()]

    def coordinates(self, key: Key) -> Iterator[Key]:
        """Full coordinates of the lanes of one chunk."""
        first = key[-1] * self.lanes
        for i in range(self.width(key)):
            yield key[:-1] + (first + i,) if self.shape else ()


class ScalarTile(Tile):
    """A tile whose elements are scalars made by `scalar(coordinates)` at first use.

    They are built at the insertion point `at`, or where they are first used when `at` is None: that keeps a load next
    to the multiply-add that broadcasts it, and registers free. Only where no use is in a nested region.
    """

    def __init__(self, shape: Sequence[int], elem: Type, lanes: int, scalar: Callable[[Key], Any],
                 at: InsertionPoint | None) -> None:
        super().__init__(shape, elem, lanes)
        self.scalar = scalar
        self.at = at
        self.scalars: dict[Key, Value] = {}

    def lane(self, at: Key) -> Value:
        if at not in self.scalars:
            with self.at or ir.InsertionPoint.current:
                self.scalars[at] = self.scalar(at)
        return self.scalars[at]

    def chunk(self, key: Key) -> Value:
        if key not in self.chunks:
            with self.at or ir.InsertionPoint.current:
                self.chunks[key] = self._pack(key)
        return self.chunks[key]

    def _pack(self, key: Key) -> Any:
        return pack([self.lane(at) for at in self.coordinates(key)])


class SplatTile(ScalarTile):
    """A tile whose chunks are splats: `scalar` gives the one element of the chunk that holds the coordinates."""

    def lane(self, at: Key) -> Value:
        return super().lane(at[:-1] + (0,))

    def _pack(self, key: Key) -> Value:
        return splat(self.lane(key[:-1] + (0,)), self.width(key))


class MaskTile(Tile):
    """What vector.create_mask makes: element (i, j, ...) is true iff i < bounds[0] and j < bounds[1] and ...

    Bounds are index values or ints. Chunks and scalar conditions are built where they are used, so that a mask
    serves a transposed access as cheaply as a straight one.
    """

    def __init__(self, shape: Sequence[int], bounds: Sequence[Value | int], lanes: int, at: InsertionPoint) -> None:
        super().__init__(shape, ir.IntegerType.get_signless(1), lanes)
        self.bounds = list(bounds)
        self.at = at
        self._conditions: dict[tuple[int, int], Value] = {}

    def full(self) -> bool:
        """True where the mask is known to be true everywhere."""
        return all(isinstance(b, int) and b >= n for b, n in zip(self.bounds, self.shape, strict=True))

    def _condition(self, dim: int, position: int) -> Value | None:
        """position < bounds[dim], or None where that always holds."""
        bound = self.bounds[dim]
        if isinstance(bound, int):
            return None if position < bound else splat_constant(self.elem, False)
        if (dim, position) not in self._conditions:
            with self.at:
                slt = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
                self._conditions[dim, position] = op("arith.cmpi", [self.elem], [index(position), bound], predicate=slt)
        return self._conditions[dim, position]

    def _conjunction(self, parts: Sequence[Value | None]) -> Value:
        held = conjunction(parts)
        return splat_constant(self.elem, True) if held is None else held

    def lane(self, at: Key) -> Value:
        return self._conjunction([self._condition(d, p) for d, p in enumerate(at)])

    def within(self, dim: int, position: int) -> Value | None:
        """Whether `position` is below the bound of `dim`; None where that is known, either way."""
        return None if isinstance(self.bounds[dim], int) else self._condition(dim, position)

    def chunk(self, key: Key) -> Value:
        if key not in self.chunks:
            with self.at:
                self.chunks[key] = self._build(key)
        return self.chunks[key]

    def _build(self, key: Key) -> Value:
        width, first = self.width(key), key[-1] * self.lanes
        outer = [self._condition(d, p) for d, p in enumerate(key[:-1])]
        bound = self.bounds[-1]
        if isinstance(bound, int):
            inner = dense_constant(self.elem, [int(first + i < bound) for i in range(width)])
        else:
            i32 = ir.IntegerType.get_signless(32)
            left = op("arith.subi", [bound.type], [bound, index(first)]) if first else bound
            left = op("arith.minsi", [bound.type], [left, index(width)])
            left = op("arith.index_cast", [i32], [op("arith.maxsi", [bound.type], [left, index(0)])])
            slt = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
            inner = op("arith.cmpi", [vec(width, self.elem)],
                       [dense_constant(i32, list(range(width))), splat(left, width)], predicate=slt)
        if all(c is None for c in outer):
            return inner
        if isinstance(bound, int) and first + width <= bound:
            return splat(self._conjunction(outer), width)
        return op("arith.andi", [inner.type], [inner, splat(self._conjunction(outer), width)])

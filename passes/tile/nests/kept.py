"""Block values in memory, and reads of neighbours that lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xcc._mlir import Type, Value, arith_d, ir
from xcc.passes.shared.values import is_vector, op, splat, splat_constant, vec
from xcc.passes.tile.lowering.views import add, mul, value_of

Coords = tuple[Any, ...]        # of a place in a block value: ints and index values
_I = arith_d.CmpIPredicate


def memory_element(element: Type) -> Type:
    """How an element is kept: a bool is a byte."""
    return ir.IntegerType.get_signless(8) if element == ir.IntegerType.get_signless(1) else element


class Kept:
    """A block value in memory: row-major in a memref of one dim, from `origin` on.

    `row`: elements from one row to the next, where there is room between rows. `panel`: columns that lie together, row
    below row, where the last dim is cut into panels; its pieces are whole panels then. `column`: elements from one
    column to the next, where columns lie together.
    """

    def __init__(self, memref: Value, shape: Sequence[int], element: Type, origin: Value | int = 0, row: int = 0,
                 panel: int = 0, column: int = 0) -> None:
        self.memref, self.shape, self.element, self.origin = memref, tuple(shape), element, origin
        self._row, self.panel, self.column = row or self.shape[-1] if self.shape else 1, panel, column

    def stride(self, dim: int) -> int:
        """Elements between neighbours along `dim`, inside a panel."""
        last = len(self.shape) - 1
        if self.column and dim >= last - 1:
            return self.column if dim == last else 1
        if self.column:
            return prod(self.shape[dim + 1:-2]) * self.column * self.shape[-1]
        if dim == last:
            return 1
        if self.panel and dim == last - 1:
            return self.panel
        return prod(self.shape[dim + 1:-1]) * self._row

    def offset(self, coords: Coords) -> Value:
        total: Value | int = self.origin
        for d, c in enumerate(coords):
            whole = self.shape[-2] if self.panel and d == len(coords) - 1 else self.stride(d)
            total = add(total, mul(c, whole))
        return value_of(total)

    def load(self, coords: Coords, lane: int, width: int) -> Value:
        """`width` neighbours along `lane`; a scalar where there is no width."""
        element = memory_element(self.element)
        at = self.offset(coords)
        if not width:
            made = op("memref.load", [element], [self.memref, at])
        elif self.stride(lane) == 1:
            made = op("vector.load", [vec(width, element)], [self.memref, at])
        else:
            made = gathered(self.memref, [at], stepped(width, self.stride(lane)), width, element)
        return self._as_bool(made)

    def store(self, piece: Value, coords: Coords, lane: int) -> None:
        if self.element == ir.IntegerType.get_signless(1):
            kind = vec(ir.VectorType(piece.type).shape[0], memory_element(self.element)) if is_vector(piece) \
                else memory_element(self.element)
            piece = arith_d.extui(kind, piece)
        at = self.offset(coords)
        if not is_vector(piece):
            op("memref.store", [], [piece, self.memref, at])
        elif self.stride(lane) == 1:
            op("vector.store", [], [piece, self.memref, at])
        else:
            width = ir.VectorType(piece.type).shape[0]
            every = splat_constant(vec(width, ir.IntegerType.get_signless(1)), 1)
            op("vector.scatter", [], [self.memref, at, stepped(width, self.stride(lane)), every, piece])

    def _as_bool(self, value: Value) -> Value:
        if self.element != ir.IntegerType.get_signless(1):
            return value
        return arith_d.cmpi(_I.ne, value, splat_constant(value.type, 0))


def stepped(width: int, stride: Value | int) -> Value:
    """0, stride, 2 * stride, ..."""
    line = op("vector.step", [vec(width, ir.IndexType.get())], [])
    return line if isinstance(stride, int) and stride == 1 else arith_d.muli(line, splat(value_of(stride), width))


def gathered(memref: Value, at: list[Value], places: Value, width: int, element: Type, mask: Value | None = None,
             other: Value | None = None) -> Value:
    every = mask if mask is not None else splat_constant(vec(width, ir.IntegerType.get_signless(1)), 1)
    rest = other if other is not None else splat_constant(vec(width, element), 0)
    return op("vector.gather", [vec(width, element)], [memref, *at, places, every, rest])

"""Operands of products, packed: rows that lie some lines apart, and panels of columns."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.values import vec
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.shared import SHARED, make_slots, packed_once

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

__all__ = ["packed", "slots_of"]

LINE = 64       # bytes of a cache line
WAYS = 1024     # bytes: rows so far apart share a few sets of a cache


def packed(r: Retiler, product: Operation, number: int, unsigned: bool) -> Kept:
    """Operand `number` in memory, its elements as wide as the sums."""
    value = product.operands[number]
    element = ir.VectorType(product.operands[2].type).element_type
    shape = ir.VectorType(value.type).shape
    if value in r.kept and ir.VectorType(value.type).element_type == element:
        return r.kept[value]
    row, panel = _layout(r, shape, element, number)
    slots = r.slots.get((product, number))
    if slots is None:
        target = Kept(r.buffer([_size(shape, row)], element).memref, shape, element, 0, row, panel)
        _fill(r, value, target, unsigned)
        return target

    def pack(origin: Any) -> None:
        _fill(r, value, Kept(slots.room, shape, element, origin, row, panel), unsigned)

    return Kept(slots.room, shape, element, packed_once(r, product, slots, pack), row, panel)


def slots_of(r: Retiler, forall: Any, product: Operation) -> None:
    """Room for the operands of `product` that instances share."""
    element = ir.VectorType(product.operands[2].type).element_type
    for number, count in enumerate(ir.DenseI64ArrayAttr(product.attributes[SHARED])):
        shape = ir.VectorType(product.operands[number].type).shape
        if count:
            make_slots(r, forall, product, number, _size(shape, _layout(r, shape, element, number)[0]))


def _layout(r: Retiler, shape: Any, element: Any, number: int) -> tuple[int, int]:
    """Elements from row to row of the left operand, columns of a panel of the right one."""
    if number:
        return shape[-1], r.width(shape[-1], element)
    bits = 64 if isinstance(element, ir.IndexType) else element.width
    apart = shape[-1] * bits // 8 % WAYS == 0
    return shape[-1] + (LINE * 8 // bits if apart else 0), 0


def _size(shape: Any, row: int) -> int:
    return prod(shape[:-1]) * row


def _fill(r: Retiler, value: Value, target: Kept, unsigned: bool) -> None:
    source = ir.VectorType(value.type).element_type

    def body(coords: Coords, lane: int, width: int) -> None:
        piece = Pieces(r).of(value, coords, lane, width)
        if source != target.element:
            piece = _widened(piece, vec(width, target.element), unsigned)
        target.store(piece, coords, lane)

    r.nest(target.shape, body, len(target.shape) - 1, width=target.panel)


def _widened(piece: Value, kind: Type, unsigned: bool) -> Any:
    if isinstance(ir.VectorType(kind).element_type, ir.FloatType):
        return arith_d.extf(kind, piece)
    return (arith_d.extui if unsigned else arith_d.extsi)(kind, piece)

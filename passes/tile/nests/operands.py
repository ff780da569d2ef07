"""Operands of products, packed: rows that lie some lines apart, or columns where these are read in vectors, and panels
of columns of the right one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.shared.values import vec
from xcc.passes.tile.nests.dots import dot_of, fill_groups
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.lines import lies_along
from xcc.passes.tile.nests.lying import Rows, read_of_rows, rows_or_copy
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.shared import SHARED, make_slots, packed_once
from xcc.passes.tile.nests.tile_registers import tile_group
from xcc.passes.tile.nests.turned import fill_rows, fill_turned, rows_block, turned_block, widened

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

LINE = 64       # bytes of a cache line
WAYS = 1024     # bytes: rows so far apart share a few sets of a cache


def packed(r: Retiler, product: Operation, number: int, unsigned: bool, group: int) -> Kept:
    """Operand `number` in memory: its elements as wide as the sums, or as they are, in groups of `group`."""
    value = product.operands[number]
    element = _element(product, group)
    shape = ir.VectorType(value.type).shape
    if value in r.kept and ir.VectorType(value.type).element_type == element and not (group and number):
        return r.kept[value]
    slots = r.slots.get((product, number))
    row, panel = _layout(r, shape, element, number, group)
    if slots is None:
        column = _column(r, value, element) if not number and not group else 0
        target = _room(r, shape, element, (row, panel, column))
        _fill(r, value, target, unsigned, group)
        return target

    def pack(origin: Value) -> None:
        _fill(r, value, Kept(slots.room, shape, element, origin, row, panel), unsigned, group)

    return Kept(slots.room, shape, element, packed_once(r, product, slots, pack), row, panel)


def rows_of(r: Retiler, product: Operation, group: int) -> Kept | Rows:
    """The left operand in memory, in groups of `group`: as it lies, where it does."""
    value = product.operands[0]
    read = read_of_rows(r, value) if (product, 0) not in r.slots else None
    if read is None:
        return packed(r, product, 0, False, group)
    shape, element = ir.VectorType(value.type).shape, _element(product, group)
    target = _room(r, shape, element, (*_layout(r, shape, element, 0, group), 0))
    return rows_or_copy(r, read, target, lambda: _fill(r, value, target, False, group))


def _room(r: Retiler, shape: list[int], element: Type, layout: tuple[int, int, int]) -> Kept:
    """Memory for a packed operand, of a row, panel and column as a Kept has."""
    row, _, column = layout
    size = prod(shape[:-2]) * column * shape[-1] if column else _size(shape, row)
    return Kept(r.buffer([size], element).memref, shape, element, 0, *layout)


def slots_of(r: Retiler, forall: Operation, product: Operation) -> None:
    """Room for the operands of `product` that instances share."""
    group = group_of(r, product)
    element = _element(product, group)
    for number, count in enumerate(ir.DenseI64ArrayAttr(product.attributes[SHARED])):
        shape = ir.VectorType(product.operands[number].type).shape
        if count:
            size = _size(shape, _layout(r, shape, element, number, group)[0])
            make_slots(r, forall, product, number, size, element)


def group_of(r: Retiler, product: Operation) -> int:
    """Elements of k that lie together in packed operands: as instructions take them, 0 where none is for them."""
    dot = dot_of(r, product, unsigned_of(product))
    return tile_group(r, product) or (dot.group if dot else 0)


def unsigned_of(product: Operation) -> set[int]:
    """Which operands are unsigned integers."""
    return set(ir.DenseI64ArrayAttr(product.attributes["xcc.unsigned"])) if "xcc.unsigned" in product.attributes \
        else set()


def _element(product: Operation, group: int) -> Type:
    """Of packed operands."""
    return ir.VectorType(product.operands[0 if group else 2].type).element_type


def _layout(r: Retiler, shape: list[int], element: Type, number: int, group: int) -> tuple[int, int]:
    """Elements from row to row of the left operand, columns of a panel of the right one."""
    if number:
        return shape[-1], r.width(shape[-1], None if group else element)
    return _apart(shape[-1], element), 0


def _column(r: Retiler, value: Value, element: Type) -> int:
    """Elements from column to column of a left operand, [..., m, k], whose neighbours lie side by side in memory along
    m; 0 where they do not."""
    *_, m, k = ir.VectorType(value.type).shape
    last = ir.VectorType(value.type).rank - 1
    turned = m >= r.lanes and lies_along(r, value, last - 1) and not (k > 1 and lies_along(r, value, last))
    return _apart(m, element) if turned else 0


def _apart(length: int, element: Type) -> int:
    """From one line of so many elements to the next, so that they share no set of a cache."""
    bits = 64 if isinstance(element, ir.IndexType) else element.width
    return length + (LINE * 8 // bits if length * bits // 8 % WAYS == 0 else 0)


def _size(shape: list[int], row: int) -> int:
    return prod(shape[:-1]) * row


def _fill(r: Retiler, value: Value, target: Kept, unsigned: bool, group: int) -> None:
    side = turned_block(r, value, target, group) if target.panel else 0
    if side:
        fill_turned(r, value, target, unsigned, group, side)
        return
    side = 0 if target.panel else rows_block(r, value, target, group)
    if side:
        fill_rows(r, value, target, group, side)
        return
    if group and target.panel:
        fill_groups(r, value, target, group)
        return
    source = ir.VectorType(value.type).element_type

    def body(coords: Coords, lane: int, width: int) -> None:
        piece = Pieces(r).of(value, coords, lane, width)
        if source != target.element:
            piece = widened(piece, vec(width, target.element), unsigned)
        target.store(piece, coords, lane)

    r.nest(target.shape, body, len(target.shape) - (2 if target.column else 1), width=target.panel)

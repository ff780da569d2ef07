"""Stores that one nest of loops makes: those with the same `xcc.together` in a block, where the last of them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.passes.tile.nests.kept import Coords

if TYPE_CHECKING:
    from xcc.passes.tile.nests.pieces import Pieces

TOGETHER = "xcc.together"       # of a vector.transfer_write: which nest of its block makes it


def stores_with(store: Operation) -> list[Operation]:
    """The stores that the nest of `store` makes, in the order of the program."""
    if TOGETHER not in store.attributes:
        return [store]
    number = store.attributes[TOGETHER]
    return [o.operation for o in store.block.operations
            if TOGETHER in o.operation.attributes and o.operation.attributes[TOGETHER] == number]


def read_ahead(pieces: Pieces, value: Value, store: Operation, coords: Coords, lane: int, width: int) -> None:
    """Makes the pieces of which `value` is made there and which the program reads ahead of `store`."""
    if not is_vector(value) or isinstance(value.owner, ir.Block):
        return
    source = value.owner.operation
    if source.block != store.block or source.is_before_in_block(store):
        pieces.of(value, coords, lane, width)
    elif is_elementwise(source):
        for v in source.operands:
            read_ahead(pieces, v, store, coords, lane, width)

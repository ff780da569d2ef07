"""Operands of products that several instances of a chunk multiply: packed once, for all of them.

A chunk keeps packed operands in slots, one for each turn of the loop around the product, and the last for all turns
that are left. With each goes its key, the scalars of which the places and masks of its elements are computed
(`passes/tile/nests/keys.py`). Where these are those of the slot, the operand is there.

No instance may write what another one reads, so what one instance has packed is what the next one would pack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.regions import for_loop, when
from xcc.passes.shared.values import as_index, index, op
from xcc.passes.tile.lowering.views import add, mul, value_of
from xcc.passes.tile.nests.keys import key_of, loop_around
from xcc.passes.walk import ops_where

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

SHARED = "xcc.shared"       # of a vector.contract: how many slots each operand has; 0: it is packed for each instance
CHUNKS = "xcc.chunks"       # of a scf.forall: in how many chunks its instances go
_I = arith_d.CmpIPredicate
_NOWHERE = -(1 << 63)


@dataclass(frozen=True)
class Slots:
    """`count` copies of an operand in `room`, and the `key` of each in `tags`."""

    count: int
    size: int
    room: Value
    tags: Value
    key: list[Value]


def shared_products(forall: Operation) -> list[Operation]:
    """The products of a program that share operands among instances."""
    return ops_where(forall, lambda o: o.name == "vector.contract" and SHARED in o.attributes)


def make_slots(r: Retiler, forall: Operation, product: Operation, number: int, size: int, element: Type) -> None:
    """Empty slots, of `size` elements each, for operand `number` of `product`."""
    count = list(ir.DenseI64ArrayAttr(product.attributes[SHARED]))[number]
    key = key_of(product.operands[number], forall)
    assert key is not None
    room = r.buffer([count * size], element, shared=True)
    tags = r.buffer([max(1, count * len(key))], ir.IndexType.get(), shared=True)
    with for_loop(index(0), index(tags.shape[0]), index(1)) as i:
        op("memref.store", [], [index(_NOWHERE), tags.memref, i])
    r.slots[product, number] = Slots(count, size, room.memref, tags.memref, key)


def packed_once(r: Retiler, product: Operation, slots: Slots, pack: Callable[[Any], None]) -> Value:
    """Where the operand is; `pack(origin)` is emitted for where it is not there yet."""
    turn = _turn(r, product, slots.count)
    origin, first = mul(turn, slots.size), mul(turn, len(slots.key))
    key = [as_index(r.get(v)) for v in slots.key]
    places = [value_of(add(first, i)) for i in range(len(key))]
    other: Any = None
    for at, k in zip(places, key, strict=True):
        differs = arith_d.cmpi(_I.ne, op("memref.load", [ir.IndexType.get()], [slots.tags, at]), k)
        other = differs if other is None else arith_d.ori(other, differs)
    with when(other):
        pack(origin)
        for at, k in zip(places, key, strict=True):
            op("memref.store", [], [k, slots.tags, at])
    return origin


def _turn(r: Retiler, product: Operation, count: int) -> Value | int:
    """The turn of the loop around, as far as there are slots."""
    loop = loop_around(product)
    if loop is None or count == 1:
        return 0
    low, step = r.get(loop.operands[0]), r.get(loop.operands[2])
    turn = op("arith.divui", [low.type], [arith_d.subi(r.get(loop.regions[0].blocks[0].arguments[0]), low), step])
    return arith_d.minsi(turn, index(count - 1))

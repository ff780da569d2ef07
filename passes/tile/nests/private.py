"""Atomic updates of a small buffer in a copy of it that a chunk of instances has to itself.

An atomic update takes several times as long as a plain one. Where a program does nothing with a buffer but update it in
one way, and never asks for the old values, instances go by chunks. A chunk updates a copy that begins with the neutral
element, and at its end what is there by then goes to the buffer, an atomic update an element. So it does where the copy
has room on the stack, and a chunk more updates than the copy elements; else each update is atomic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.combining import combiner, rmw_kind
from xcc.passes.shared.regions import for_loop, when
from xcc.passes.shared.updates import emit_extent, neutral, update_kind
from xcc.passes.shared.values import index, op, scalar_attr, splat_constant, vec

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

MOST_BYTES = 256 << 10  # of a copy: it stays in a core's second cache
ROOM = 2 * MOST_BYTES   # of all copies of a chunk
LINE = 64
_FEWEST = 2             # updates an element of the copy, of a chunk
_MANY = 16              # beside which an atomic update an element is little
_I, _F = arith_d.CmpIPredicate, arith_d.CmpFPredicate


@dataclass(frozen=True)
class Private:
    """The copy of the buffer `whole`, a line of `extent` elements, which is updated where `used`, by `kind`."""

    copy: Value
    whole: Value
    extent: Value
    used: Value
    kind: str

    def update(self, value: Value, place: Value) -> None:
        """A plain update of the copy."""
        old = op("memref.load", [value.type], [self.copy, place])
        op("memref.store", [], [self._combined(old, value, value.type), self.copy, place])

    def update_line(self, values: Value, first: Value, mask: Value) -> None:
        """Plain updates of neighbours, from the place `first` on."""
        old = op("vector.maskedload", [values.type], [self.copy, first, mask, values])
        made = self._combined(old, values, ir.VectorType(values.type).element_type)
        op("vector.maskedstore", [], [self.copy, first, mask, made])

    def _combined(self, old: Value, new: Value, element: Type) -> Value:
        return cast(Value, combiner("sum" if self.kind == "add" else self.kind, element)(old, new))


def copies(r: Retiler, updates: dict[Value, list[Operation]]) \
        -> tuple[Callable[[Any], None], Callable[[], None], list[Value]]:
    """What a chunk does first, and last, to have copies of the buffers of `updates`; instances that a chunk shall have
    so that what it updates is much more than what it adds at the end."""
    extents = {memref: emit_extent(memref, r.get) for memref in updates}
    many = [op("arith.ceildivui", [n.type], [arith_d.muli(n, index(_MANY)), index(_made(updates[memref]))])
            for memref, n in extents.items()]

    def begin(instances: Value) -> None:
        for memref, n in extents.items():
            r.private[memref] = _copy(r, updates[memref], n, instances, min(MOST_BYTES, ROOM // len(updates)))

    def end() -> None:
        for memref in extents:
            _merge(r.private.pop(memref))

    return begin, end, many


def _made(updates: list[Operation]) -> int:
    """Elements that an instance updates, at most."""
    return sum(prod(ir.VectorType(u.operands[0].type).shape) for u in updates)


def _copy(r: Retiler, updates: list[Operation], extent: Value, instances: Value, bytes: int) -> Private:
    """Room of so many bytes for a copy, filled with the neutral element where it is used."""
    memref = updates[0].operands[1]
    if not isinstance(memref.owner, ir.Block):
        r.emit(memref.owner)
    kind, element = update_kind(updates[0]), ir.MemRefType(memref.type).element_type
    width = r.vector_bytes * 8 // element.width
    most = bytes // LINE * LINE * 8 // element.width
    room = r.buffer((most,), element)
    enough = arith_d.cmpi(_I.sle, arith_d.muli(extent, index(_FEWEST)), arith_d.muli(instances, index(_made(updates))))
    used = arith_d.andi(arith_d.cmpi(_I.sle, extent, index(most)), enough)
    with when(used):
        nothing = splat_constant(vec(width, element), neutral(kind, element))
        with for_loop(index(0), extent, index(width)) as i:
            op("vector.store", [], [nothing, room.memref, i])
    return Private(room.memref, r.get(memref), extent, used, kind)


def _merge(private: Private) -> None:
    """What the copy has become goes to the buffer."""
    element = ir.MemRefType(private.whole.type).element_type
    with when(private.used), for_loop(index(0), private.extent, index(1)) as i:
        value = op("memref.load", [element], [private.copy, i])
        nothing = op("arith.constant", [element], [], value=scalar_attr(element, neutral(private.kind, element)))
        changed = arith_d.cmpf(_F.UNE, value, nothing) if isinstance(element, ir.FloatType) \
            else arith_d.cmpi(_I.ne, value, nothing)
        with when(changed):
            op("memref.atomic_rmw", [element], [value, private.whole, i], kind=rmw_kind(private.kind, element))

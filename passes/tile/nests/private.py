"""Atomic updates of a small buffer in a copy of it that a chunk of instances has to itself.

An atomic update takes several times as long as a plain one. Where a program does nothing with a buffer but update it in
one way, and never asks for the old values, instances go by chunks. A chunk updates a copy that begins with the neutral
element, and at its end what is there by then goes to the buffer, an atomic update an element. So it does where the copy
has room on the stack, and a chunk more updates than the copy elements; else each update is atomic.

Rows that go to a buffer without such room, by instances that do little else, are updated in place, in vectors and
without atomics: all instances are one chunk, of one thread. An atomic update an element takes a core some twenty times
as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.combining import rmw_kind
from xcc.passes.shared.regions import for_loop, when
from xcc.passes.shared.updates import emit_extent, neutral, update_kind
from xcc.passes.shared.values import index, op, scalar_attr, splat_constant, vec
from xcc.passes.tile.nests.choice import before_lines
from xcc.passes.tile.nests.chunks import CHUNKS_A_CORE
from xcc.passes.tile.nests.lines import run_along
from xcc.passes.tile.nests.single import combined
from xcc.passes.walk import ops_where

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

MOST_BYTES = 256 << 10  # of a copy: it stays in a core's second cache
ROOM = 2 * MOST_BYTES   # of all copies of a chunk
LINE = 64
_FEWEST = 2             # updates an element of the copy, of a chunk
_MANY = 16              # beside which an atomic update an element is little
_CORES = 16             # up to which one updates rows in vectors in less time than all of them by atomics
_LONG = ("scf.for", "scf.while", "vector.contract", "vector.scan", "tile.sort")   # what is more than the updates
_I, _F = arith_d.CmpIPredicate, arith_d.CmpFPredicate


@dataclass(frozen=True)
class Private:
    """The copy of the buffer `whole`, a line of `extent` elements, which is updated where `used`, by `kind`; `whole` is
    itself where `alone`, as there is one chunk."""

    copy: Value
    whole: Value
    extent: Value
    used: Value
    alone: Value | None
    kind: str

    def update_line(self, memref: Value, values: Value, first: Value, mask: Value) -> None:
        """Plain updates of neighbours, from the place `first` on."""
        old = op("vector.maskedload", [values.type], [memref, first, mask, values])
        made = combined(self.kind, old, values, ir.VectorType(values.type).element_type)
        op("vector.maskedstore", [], [memref, first, mask, made])


def copies(r: Retiler, source: Operation, updates: dict[Value, list[Operation]]) \
        -> tuple[Callable[[Any], None], Callable[[], None], list[Value], Value | None]:
    """What a chunk of `source` does first, and last, to have copies of the buffers of `updates`; instances that a chunk
    shall have so that what it updates is much more than what it adds at the end; whether one shall have all."""
    extents = {memref: emit_extent(memref, r.get) for memref in updates}
    many = [op("arith.ceildivui", [n.type], [arith_d.muli(n, index(_MANY)), index(_made(updates[memref]))])
            for memref, n in extents.items()]
    bytes = min(MOST_BYTES, ROOM // max(1, len(updates)))
    alone = None
    for memref, n in extents.items() if _only_rows(r, source, updates) else ():
        large = arith_d.cmpi(_I.sgt, n, index(_room(memref, bytes)))
        alone = large if alone is None else arith_d.ori(alone, large)

    def begin(instances: Value) -> None:
        for memref, n in extents.items():
            r.private[memref] = _copy(r, updates[memref], n, instances, _room(memref, bytes), alone)

    def end() -> None:
        for memref in extents:
            _merge(r.private.pop(memref))

    return begin, end, many, alone


def _only_rows(r: Retiler, source: Operation, updates: dict[Value, list[Operation]]) -> bool:
    """Whether the instances of `source` do little but update neighbours, and that on few cores."""
    if r.chunks > _CORES * CHUNKS_A_CORE or any(True for _ in ops_where(source, lambda o: o.name in _LONG)):
        return False
    lines = [before_lines(update)[-1] for some in updates.values() for update in some]
    return all(run_along(r, places, ir.VectorType(places.type).rank - 1) == 1 for places in lines)


def _room(memref: Value, bytes: int) -> int:
    """Elements of a copy of so many bytes."""
    return bytes // LINE * LINE * 8 // int(ir.MemRefType(memref.type).element_type.width)


def _made(updates: list[Operation]) -> int:
    """Elements that an instance updates, at most."""
    return sum(prod(ir.VectorType(u.operands[0].type).shape) for u in updates)


def _copy(r: Retiler, updates: list[Operation], extent: Value, instances: Value, most: int,
          alone: Value | None) -> Private:
    """Room of `most` elements for a copy, filled with the neutral element where it is used."""
    memref = updates[0].operands[1]
    if not isinstance(memref.owner, ir.Block):
        r.emit(memref.owner)
    kind, element = update_kind(updates[0]), ir.MemRefType(memref.type).element_type
    width = r.vector_bytes * 8 // element.width
    room = r.buffer((most,), element)
    enough = arith_d.cmpi(_I.sle, arith_d.muli(extent, index(_FEWEST)), arith_d.muli(instances, index(_made(updates))))
    used = arith_d.andi(arith_d.cmpi(_I.sle, extent, index(most)), enough)
    if alone is not None:
        used = arith_d.andi(used, arith_d.xori(alone, arith_d.constant(alone.type, 1)))
    with when(used):
        nothing = splat_constant(vec(width, element), neutral(kind, element))
        with for_loop(index(0), extent, index(width)) as i:
            op("vector.store", [], [nothing, room.memref, i])
    return Private(room.memref, r.get(memref), extent, used, alone, kind)


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

"""Updates of an element: plain ones where one thread runs all instances, else atomic, which takes ten times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xcc._mlir import Type, Value
from xcc.passes.shared.combining import combiner, rmw_kind
from xcc.passes.shared.regions import any_of
from xcc.passes.shared.values import op

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def combined(kind: str, old: Value, new: Value, element: Type) -> Value:
    """What an update by `kind` of a tile.atomic leaves of `old`."""
    return cast(Value, combiner("sum" if kind == "add" else kind, element)(old, new))


def update_plainly(kind: str, memref: Value, place: Value, value: Value) -> Value:
    """An update of the element at `place` that is not atomic; what was there before."""
    old = op("memref.load", [value.type], [memref, place])
    op("memref.store", [], [combined(kind, old, value, value.type), memref, place])
    return old


def update_one(r: Retiler, kind: str, memref: Value, place: Value, value: Value) -> Value:
    """An update by `kind`, which is not an exchange; what was there before."""
    def atomically() -> list[Value]:
        return [op("memref.atomic_rmw", [value.type], [value, memref, place], kind=rmw_kind(kind, value.type))]

    if r.single is None:
        return atomically()[0]
    return any_of(r.single, [value.type], lambda: [update_plainly(kind, memref, place, value)], atomically)[0]

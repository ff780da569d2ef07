"""Kept values that need no loops of their own: a reduction's loops, which walk their elements once, keep them."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.passes.tile.nests.choice import is_lazy, kept, roots, unit_reshape, writes


def keeping_reduction(source: Operation) -> Operation | None:
    """The reduction in whose loops the kept value of `source` is computed; None where it needs loops of its own. The
    reduction is the first that needs it, element beside element, and nothing between them writes memory."""
    if len(source.results) != 1:
        return None
    order = [o.operation for o in source.block.operations]
    at = order.index(source)
    last = min((order.index(r) for r in roots(source)), default=at)
    first, value = order[last], source.results[0]
    if first.name != "vector.multi_reduction" or any(writes(o) for o in order[at:last]):
        return None
    ways = [_ways(v, value, {}) for v in first.operands]
    return first if ways == [True, False] else None


def _ways(value: Value, wanted: Value, known: dict[Value, bool | None]) -> bool | None:
    """Whether elements of `value` are computed of those of `wanted` at their own places; None where one of others, or
    by way of a value that is kept."""
    if value == wanted:
        return True
    if not is_vector(value) or isinstance(value.owner, ir.Block) or not is_lazy(value.owner.operation):
        return False
    if value not in known:
        known[value] = _ways_of(value.owner.operation, wanted, known)
    return bool(known[value]) if known[value] is not None else None


def _ways_of(source: Operation, wanted: Value, known: dict[Value, bool | None]) -> bool | None:
    inner = [_ways(v, wanted, known) for v in source.operands]
    if None in inner:
        return None
    if not any(inner):
        return False
    beside = is_elementwise(source) or (source.name == "vector.shape_cast" and unit_reshape(source))
    return True if beside and not kept(source) else None

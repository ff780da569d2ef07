"""Scatters whose index is one for all of a row: it is not repeated for each element.

    scatter_elements(x, broadcast(i : 4000x1) : 4000x64, u : 4000x64) {axis = 1}   becomes   scatter_elements(x, i, u)

Along the first axis, with whole rows, it is a scatter of rows: ``scatter_nd(x, i, u)``.
"""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import same_dims
from xcc.passes.xt.graph.rewrite import producer


def shared_index(op: Operation) -> Value | None:
    """The scatter with each index once; None where it has no more."""
    x, indices, updates = op.operands
    a, source = xt.attrs_of(op), producer(indices, "broadcast")
    if source is None:
        return None
    given, whole = xt.shape_of(source.operands[0]), xt.shape_of(indices)
    given = (*(1,) * (len(whole) - len(given)), *given)
    if given[a.axis] != whole[a.axis] or given == whole:
        return None
    once = xt.reshape(source.operands[0], shape=given)
    beside = [d for d in range(len(whole)) if d != a.axis]
    rows = all(given[d] == 1 and same_dims(xt.shape_of(x)[d], whole[d]) for d in beside)
    if a.axis == 0 and rows and beside:
        return xt.scatter_nd(x, xt.reshape(once, shape=(whole[0], 1)), updates, reduction=a.reduction)
    return xt.scatter_elements(x, once, updates, axis=a.axis, reduction=a.reduction)

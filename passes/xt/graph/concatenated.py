"""Parts of concatenations: what a slice takes of the values that lie beside each other.

    slice(concatenate(a : 4, b : 6)) [5:8]   becomes   slice(b) [1:4]
    concatenate(x[0:4], x[4:6])              becomes   x[0:6]
"""

from __future__ import annotations

import itertools

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import producer


def slice_of_concatenation(op: Operation) -> Value | None:
    """The slice of the one operand that it lies in; None where it takes of several, or their sizes are not known."""
    joined, a = producer(op.operands[0], "concatenate"), xt.attrs_of(op)
    if joined is None:
        return None
    axis, begin = xt.attrs_of(joined).axis, 0
    for part in joined.operands:
        size, start, limit = xt.shape_of(part)[axis], a.starts[axis], a.limits[axis]
        if not isinstance(size, int) or not isinstance(start, int) or not isinstance(limit, int):
            return None
        if begin <= start and limit <= begin + size:
            starts, limits = ([*ends[:axis], ends[axis] - begin, *ends[axis + 1:]] for ends in (a.starts, a.limits))
            return xt.slice_(part, starts=starts, limits=limits, strides=a.strides)
        begin += size
    return None


def neighbouring_slices(op: Operation) -> Value | None:
    """The concatenation of slices of one value that lie beside each other there, as one slice."""
    axis, parts = xt.attrs_of(op).axis, list(op.operands)
    for n, (left, right) in enumerate(itertools.pairwise(parts)):
        joined = _joined(left, right, axis)
        if joined is not None:
            rest = [*parts[:n], joined, *parts[n + 2:]]
            return joined if len(rest) == 1 else xt.concatenate(*rest, axis=axis)
    return None


def _joined(left: Value, right: Value, axis: int) -> Value | None:
    first, second = producer(left, "slice"), producer(right, "slice")
    if first is None or second is None or first.operands[0] != second.operands[0]:
        return None
    a, b = xt.attrs_of(first), xt.attrs_of(second)
    step = a.strides[axis]
    follows = b.starts[axis] == a.limits[axis] if step == 1 else \
        b.starts[axis] == a.starts[axis] + xt.shape_of(left)[axis] * step
    ends = list(zip(a.starts, a.limits, b.starts, b.limits, strict=True))
    if not follows or a.strides != b.strides or any(e[:2] != e[2:] for d, e in enumerate(ends) if d != axis):
        return None
    limits = [*a.limits[:axis], b.limits[axis], *a.limits[axis + 1:]]
    return xt.slice_(first.operands[0], starts=a.starts, limits=limits, strides=a.strides)

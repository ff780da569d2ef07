"""Parts of concatenations: what a slice takes of the values that lie beside each other.

    slice(concatenate(a : 4, b : 6)) [5:8]   becomes   slice(b) [1:4]
"""

from __future__ import annotations

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

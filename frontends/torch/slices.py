"""Where indices and slices begin and end, as torch reads ``x[start:end:step]``: data alone, for the capture and the
importer.

An index from the end is negative. Of one that sizes or numbers of a call decide, the bounds of these tell the sign, or
the run does.
"""

from __future__ import annotations

from xcc import symbolic
from xcc.bounds import Bounds, interval
from xcc.symbolic import Dim

__all__ = ["clamp_index", "from_front", "slice_length"]

ENDLESS = 1 << 62
"""What torch writes for an end that is left out is larger."""


def from_front(index: Dim, size: Dim, bounds: Bounds) -> Dim:
    """An index into `size` elements, counted from the first one."""
    low, high = interval(bounds, index, 0)
    if high < 0:
        return size + index
    if low >= 0:
        return index
    negative = symbolic.dim_min(symbolic.dim_max(index * -1, 0), 1)
    return index + symbolic.product((size, negative))


def clamp_index(index: Dim | None, size: Dim, default: Dim, bounds: Bounds) -> Dim:
    """A start or end of a slice: from the end where it is negative, then inside [0, size]."""
    if index is None:
        return default
    if index == 0:
        return 0
    if isinstance(index, int) and index >= ENDLESS:
        return size
    front = from_front(index, size, bounds)
    low, high = interval(bounds, index, 0)
    front = symbolic.dim_max(front, 0) if low < 0 else front
    return front if high < 0 else symbolic.dim_min(front, size)


def slice_length(start: Dim | None, end: Dim | None, step: int, size: Dim, bounds: Bounds) -> Dim:
    """How many elements of `size` are in ``[start:end:step]``."""
    length = clamp_index(end, size, size, bounds) - clamp_index(start, size, 0, bounds)
    return symbolic.ceildiv(symbolic.dim_max(length, 0), step)

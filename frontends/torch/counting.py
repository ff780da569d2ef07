"""Results whose size is a sum or a maximum of what a run is given."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, element, full, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.scalars import counted_size
from xcc.symbolic import Dim


@aten("repeat_interleave.Tensor")
def repeated_places(cx: Context) -> Value:
    """0 `repeats[0]` times, 1 `repeats[1]` times, ...: how many repeats end at a place or ahead of it."""
    repeats = convert(cx.tensor("repeats"), "i64")
    ends = xt.cumulative(repeats, kind="sum", axis=0)
    total = xt.reduce(repeats, kind="sum", axes=(0,))
    size = counted_size(cx, total, "the sum of repeats, is a size")
    ended = _counts(ends, full(xt.shape_of(ends), 1, "i64"), size + 1)
    return convert(xt.cumulative(slice_axis(ended, 0, 0, size), kind="sum", axis=0), cx.out().dtype)


@aten("bincount")
def bincount(cx: Context) -> Value:
    """How often each number from 0 on is there, or the sum of its weights; up to `minlength`, or to the largest one."""
    x, least = convert(cx.tensor("self"), "i64"), int(cx["minlength"] or 0)
    longest = xt.reduce(xt.concatenate(x, full((1,), least - 1, "i64"), axis=0), kind="max", axes=(0,))
    size = counted_size(cx, xt.add(longest, xt.scalar(1, "i64")), "one more than the largest element, is a size")
    kind = cx.out().dtype
    each = full(xt.shape_of(x), 1, kind) if cx["weights"] is None else convert(cx.tensor("weights"), kind)
    return _counts(x, each, size)


def _counts(places: Value, each: Value, size: Dim) -> Value:
    """The sum of `each` at each of `size` places."""
    return xt.scatter_elements(full((size,), 0, element(each)), places, each, axis=0, reduction="add")

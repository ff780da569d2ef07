"""Reductions of runs of a dim, and their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, rank_of, scalar, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

_COMBINED = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min"}


@dataclass(frozen=True)
class _Segments:
    """`own`: of each element the segment that it is in, i64 in the data's shape; `size`, behind the last, for none."""

    own: Value
    axis: int
    size: Dim

    def combined(self, values: Value, start: Value, kind: str) -> Value:
        """The values of each segment, from the number `start` on."""
        shape = list(xt.shape_of(values))
        shape[self.axis] = self.size + 1
        begun = xt.broadcast(start, shape=tuple(shape))
        out = xt.scatter_elements(begun, self.own, values, axis=self.axis, reduction=kind)
        return slice_axis(out, self.axis, 0, self.size)

    def lengths(self, kind: str) -> Value:
        """How many elements each segment has."""
        return self.combined(full(xt.shape_of(self.own), 1, kind), xt.scalar(0, kind), "add")

    def of_elements(self, values: Value) -> Value:
        """For each element what its segment has; for those in none 0."""
        shape = list(xt.shape_of(values))
        shape[self.axis] = 1
        wide = xt.concatenate(values, full(shape, 0, element(values)), axis=self.axis)
        return xt.gather_elements(wide, self.own, axis=self.axis)


def _segments(cx: Context) -> _Segments:
    """From `lengths` or `offsets` [.., segments], whose first dims are those of the data before the axis."""
    data = cx.tensor("data")
    axis, shape = cx.axis("axis", rank_of(data)), list(xt.shape_of(data))
    if cx.optional("lengths") is not None:
        ends = xt.cumulative(convert(cx.tensor("lengths"), "i64"), kind="sum", axis=axis)
        first = [*xt.shape_of(ends)[:axis], 1]
        offsets = xt.concatenate(full(first, 0, "i64"), ends, axis=axis)
    elif cx.optional("offsets") is not None:
        offsets = convert(cx.tensor("offsets"), "i64")
    else:
        cx.fail("needs lengths or offsets")
    size = xt.shape_of(offsets)[axis] - 1
    count = shape[axis]
    begun = xt.scatter_elements(full([*shape[:axis], count + 1], 0, "i64"), offsets,
                                full(xt.shape_of(offsets), 1, "i64"), axis=axis, reduction="add")
    own = xt.sub(xt.cumulative(slice_axis(begun, axis, 0, count), kind="sum", axis=axis), xt.scalar(1, "i64"))
    own = xt.select(xt.compare(own, xt.scalar(0, "i64"), direction="lt"), dim_scalar(size, "i64"), own)
    own = xt.reshape(own, shape=(*shape[:axis + 1], *[1] * (len(shape) - axis - 1)))
    return _Segments(xt.broadcast(own, shape=tuple(shape)), axis, size)


def _start(cx: Context, kind: str, data: Value) -> Value:
    """What a segment without elements has."""
    given = cx.get("initial")
    return cx.scalar({"prod": 1.0, "max": -math.inf, "min": math.inf}.get(kind, 0.0) if given is None else given, data)


@aten("segment_reduce")
def segment_reduce(cx: Context) -> Value:
    """sum, mean, prod, max or min of each segment along `axis`; the mean of none is NaN, or `initial`."""
    data, kind, segments = cx.tensor("data"), cx["reduce"], _segments(cx)
    out = segments.combined(data, _start(cx, kind, data), _COMBINED[kind])
    if kind != "mean":
        return out
    lengths = segments.lengths(element(data))
    if cx.get("initial") is not None:
        lengths = xt.maximum(lengths, scalar(1, lengths))
    return xt.div(out, lengths)


@aten("_segment_reduce_backward")
def segment_reduce_backward(cx: Context) -> Value:
    """Elements that are the extreme share its gradient; with one 0 in a segment the others' product is that one's."""
    data, kind, segments = cx.tensor("data"), cx["reduce"], _segments(cx)
    grad = cx.tensor("grad")
    if kind == "mean":
        lengths = segments.lengths(element(data))
        grad = xt.div(grad, xt.maximum(lengths, scalar(1, lengths)))
    each = segments.of_elements(grad)
    if kind in ("sum", "mean"):
        return each
    output = segments.of_elements(cx.tensor("output"))
    nothing = scalar(0, data)
    if kind == "prod":
        is_zero = xt.compare(data, nothing, direction="eq")
        others = segments.combined(xt.select(is_zero, scalar(1, data), data), _start(cx, kind, data), "mul")
        zeros = segments.of_elements(segments.combined(convert(is_zero, "i32"), xt.scalar(0, "i32"), "add"))
        alone = xt.compare(zeros, xt.scalar(1, "i32"), direction="eq")
        without = xt.select(alone, segments.of_elements(others), nothing)
        return xt.mul(each, xt.select(is_zero, without, xt.div(output, data)))
    extreme = xt.or_(xt.compare(data, output, direction="eq"), xt.is_nan(data))
    count = segments.of_elements(segments.combined(convert(extreme, element(data)), nothing, "add"))
    return xt.select(extreme, xt.div(each, xt.maximum(count, scalar(1, count))), nothing)

"""Boxes that overlap."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import scalar, unsqueeze


def best_boxes(corners: Sequence[Value], alive: Value, overlap: Value) -> Value:
    """Which boxes are kept of those `alive` (i1), all [batch, classes, n], the best first: not those whose intersection
    with a better kept one is more than `overlap` of their union. `corners` are y1, x1, y2, x2."""
    n = xt.shape_of(alive)[2]
    line, row = (xt.iota(shape=s, axis=d, dtype="i32") for s, d in (((1, 1, n), 2), ((n, 1), 0)))
    clash = xt.and_(xt.compare(_overlaps(*corners), overlap, direction="gt"), xt.compare(line, row, direction="lt"))

    def step(state: Sequence[Value], slices: Sequence[Value]) -> tuple[list[Value], list[int]]:
        keep, (rivals, i) = state[0], slices
        beaten = xt.reduce(xt.and_(rivals, keep), kind="or", axes=(2,), keepdims=True)
        own = xt.compare(line, i, direction="eq")
        return [xt.and_(keep, xt.not_(xt.and_(own, beaten)))], []

    (kept,) = xt.scan([alive], [clash, xt.iota(shape=(n,), axis=0, dtype="i32")], step, axes=[2, 0])
    return kept


def _overlaps(y1: Value, x1: Value, y2: Value, x2: Value) -> Value:
    """Intersection over union of all pairs, of [batch, classes, n] each: [batch, classes, n, n]."""
    zero = scalar(0, y1)

    def shared(low: Value, high: Value) -> Value:
        start = xt.maximum(unsqueeze(low, [3]), unsqueeze(low, [2]))
        end = xt.minimum(unsqueeze(high, [3]), unsqueeze(high, [2]))
        return xt.maximum(xt.sub(end, start), zero)

    both = xt.mul(shared(y1, y2), shared(x1, x2))
    area = xt.mul(xt.sub(y2, y1), xt.sub(x2, x1))
    union = xt.sub(xt.add(unsqueeze(area, [3]), unsqueeze(area, [2])), both)
    empty = xt.compare(union, zero, direction="le")
    return xt.select(empty, zero, xt.div(both, xt.select(empty, scalar(1, union), union)))

"""best_boxes on GPUs: all boxes of an image and class in order, which of all pairs overlap, and a step a box that drops
it where it overlaps a better one that is kept.

    %s, %o = xt.top_k(%scores)                      all n
    %clash = overlap of pairs > %overlap, where the first is the better one            [batch, classes, n, n]
    %kept = xt.scan(%s > %least, %clash) { keep and not (self and any (clash and keep)) }
    %keys, %at = xt.sort(%kept and its rank <= %most ? iota : n + iota)
    %r = %keys < n ? xt.gather(%o, %at) : -1
"""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose.build import const, convert, dim_scalar, shape, take
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim


@register_pass
class BoxPairs(Pass):
    """Turns best_boxes into a sort, all pairs and a scan, whose steps have work for many threads."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"best_boxes": _pairs})


def _pairs(op: Operation) -> Value:
    boxes, scores, most, overlap, *least = op.operands
    dims, n = shape(scores), shape(scores)[2]
    ranked, order = xt.top_k(scores, k=n, axis=2, largest=True)
    corners = [xt.gather(xt.broadcast(_column(boxes, c, dims), shape=dims), order, axis=2, batch_dims=2)
               for c in range(4)]
    alive = xt.compare(ranked, least[0], direction="gt") if least else \
        xt.broadcast(xt.constant(True, dtype="i1"), shape=dims)
    kept = _kept(corners, alive, overlap)
    rank = xt.cumulative(convert(kept, "i64"), kind="sum", axis=2)
    kept = xt.and_(kept, xt.compare(rank, most, direction="le"))
    size, line = dim_scalar(n, "i32"), xt.iota(shape=(1, 1, n), axis=2, dtype="i32")
    keys, at = xt.sort(xt.select(kept, line, xt.add(line, size)), axis=2)
    numbers = convert(xt.gather(order, at, axis=2, batch_dims=2), "i32")
    return xt.select(xt.compare(keys, size, direction="lt"), numbers, const(-1, numbers))


def _column(boxes: Value, c: int, dims: Sequence[Dim]) -> Value:
    return xt.reshape(take(boxes, 2, c, c + 1), shape=(dims[0], 1, dims[2]))


def _kept(corners: Sequence[Value], alive: Value, overlap: Value) -> Value:
    """Which boxes are kept of those `alive` (i1), all [batch, classes, n], the best first."""
    n = shape(alive)[2]
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
    zero = const(0, y1)

    def pair(v: Value) -> tuple[Value, Value]:
        b, c, n = shape(v)
        return xt.reshape(v, shape=(b, c, n, 1)), xt.reshape(v, shape=(b, c, 1, n))

    def shared(low: Value, high: Value) -> Value:
        return xt.maximum(xt.sub(xt.minimum(*pair(high)), xt.maximum(*pair(low))), zero)

    both = xt.mul(shared(y1, y2), shared(x1, x2))
    union = xt.sub(xt.add(*pair(xt.mul(xt.sub(y2, y1), xt.sub(x2, x1)))), both)
    empty = xt.compare(union, zero, direction="le")
    return xt.select(empty, zero, xt.div(both, xt.select(empty, const(1, union), union)))

"""Ops that read or write at places that are data: dims that are not indexed are shared, and those of the indices."""

from __future__ import annotations

from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.sharding.factors import Factor, OpView, Rule, Strategy, rule
from xcc.passes.xt.sharding.placement import local_shape


@rule("gather")
def gather(v: OpView) -> Rule:
    """Result dims: x[:axis], indices[batch_dims:], x[axis + 1:]."""
    axis, batch = v.a.axis, v.a.batch_dims
    x, indices = v.operands
    out: list[Factor] = []
    for d in range(x.rank):
        if d < batch:
            out += v.factor({0: d, 1: d}, {0: d})
        elif d != axis:
            out += v.factor({0: d}, {0: d if d < axis else d + indices.rank - batch - 1})
    for d in range(batch, indices.rank):
        out += v.factor({1: d}, {0: axis + d - batch})
    return Rule(tuple(out), ((0,),))


@rule("gather_nd")
def gather_nd(v: OpView) -> Rule:
    """Result dims: indices[:-1], x[batch_dims + vector length:]."""
    x, indices = v.operands
    batch, last = v.a.batch_dims, indices.rank - 1
    first = batch + int(indices.shape[last])  # type: ignore[arg-type]
    out = [f for d in range(last) for f in v.factor({1: d, **({0: d} if d < batch else {})}, {0: d})]
    out += [f for d in range(first, x.rank) for f in v.factor({0: d}, {0: last + d - first})]
    return Rule(tuple(out), ((0,),))


@rule("gather_elements")
def gather_elements(v: OpView) -> Rule:
    """Dims but the axis, where as many places are read as there are; along the axis those of the indices."""
    out = [f for d in range(v.operands[0].rank) if d != v.a.axis for f in v.factor({0: d, 1: d}, {0: d})]
    return Rule((*out, *v.factor({1: v.a.axis}, {0: v.a.axis})), ((0,),))


@rule("scatter_elements")
def scatter_elements(v: OpView) -> Rule:
    """Dims but the axis, where as many places are written as there are; indices may have 1 there."""
    out: list[Factor] = []
    for d in range(v.operands[0].rank):
        if d != v.a.axis:
            indices = {} if v.operands[1].shape[d] == 1 and v.operands[2].shape[d] != 1 else {1: d}
            out += v.factor({0: d, **indices, 2: d}, {0: d})
    return Rule(tuple(out))


@rule("scatter_nd")
def scatter_nd(v: OpView) -> Rule:
    """The dims of the slices that are written."""
    x, indices, updates = v.operands
    depth = int(indices.shape[-1])  # type: ignore[arg-type]
    return Rule(tuple(f for d in range(depth, x.rank) for f in v.factor({0: d, 2: d - x.rank + updates.rank}, {0: d})))


@rule("dynamic_slice")
def dynamic_slice(v: OpView) -> Rule:
    """Dims taken whole."""
    return Rule(tuple(v.same()), ((0,),), local=_local_sizes)


def _local_sizes(a: Attrs, v: OpView, s: Strategy, ranks: int) -> None:
    a.sizes = local_shape(v.results[0].shape, s.results[0], ranks)


@rule("dynamic_update_slice")
def dynamic_update_slice(v: OpView) -> Rule:
    """Dims written whole."""
    return Rule(tuple(f for d in range(v.results[0].rank) for f in v.factor({0: d, 1: d}, {0: d})), ((0, 1),))


@rule("roi_align")
def roi_align(v: OpView) -> Rule:
    """x [N, C, h, w], rois [M, 4], batch [M] -> [M, C, ...]."""
    return Rule((*v.factor({0: 1}, {0: 1}), *v.factor({1: 0, 2: 0}, {0: 0})))


@rule("grid_sample")
def grid_sample(v: OpView) -> Rule:
    """x [N, C, ...], grid [N, ..., k] -> [N, C, ...]."""
    rank = v.results[0].rank
    return Rule((*v.factor({0: 0, 1: 0}, {0: 0}), *v.factor({0: 1}, {0: 1}),
                 *(f for d in range(2, rank) for f in v.factor({1: d - 1}, {0: d}))))

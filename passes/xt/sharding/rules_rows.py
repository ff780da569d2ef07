"""Reductions, sorts, norms and windows: what runs over one axis, or some, is shared along the others."""

from __future__ import annotations

from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.resize import resized
from xcc.passes.xt.sharding.factors import OpView, Rule, Side, Strategy, rule
from xcc.passes.xt.sharding.rules_pointwise import broadcast_factors
from xcc.runtime.program import COMBINED_TYPES

COMBINES = {"sum": "add", "max": "max", "min": "min", "prod": "mul"}


@rule("reduce")
def reduce_(v: OpView) -> Rule:
    """Kept dims; reduced ones give partial results, each rank's of its part."""
    rank, axes = v.operands[0].rank, v.a.axes
    kept = [d for d in range(rank) if d not in axes]
    out = [f for n, d in enumerate(kept) for f in v.factor({0: d}, {0: d if v.a.keepdims else n})]
    if v.a.kind in COMBINES and v.operands[0].dtype in COMBINED_TYPES:
        out += [f for d in axes for f in v.factor({0: d}, {}, COMBINES[v.a.kind])]
    return Rule(tuple(out), ((0,),) if v.a.kind == "sum" else ())


@rule("arg_reduce")
def arg_reduce(v: OpView) -> Rule:
    kept = [d for d in range(v.operands[0].rank) if d != v.a.axis]
    return Rule(tuple(f for n, d in enumerate(kept) for f in v.factor({0: d}, {0: d if v.a.keepdims else n})))


@rule("cumulative", "log_softmax", "softmax", "sort", "top_k")
def along_axis(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=(v.a.axis,))), ((0,),) if getattr(v.a, "kind", "") == "sum" else ())


@rule("layer_norm", "rms_norm")
def norm(v: OpView) -> Rule:
    """Dims that the mean is not taken over; scale and bias are aligned at the right."""
    return Rule(tuple(broadcast_factors(v, tuple(range(len(v.operands))), v.a.axes)))


@rule("group_norm")
def group_norm(v: OpView) -> Rule:
    """The batch, and groups of channels."""
    channels = [n for n in range(1, len(v.operands))]
    groups = v.factor({0: Side(1), **dict.fromkeys(channels, Side(0))}, {0: Side(1)}, size=v.a.groups)
    return Rule((*v.factor({0: 0}, {0: 0}), *groups), local=local_groups)


def local_groups(a: Attrs, v: OpView, s: Strategy, ranks: int) -> None:
    """Channels, of which each rank has some groups."""
    if s.factor is not None and s.factor.size is not None and s.results[0].kind == "split" and s.results[0].dim == 1:
        a.groups //= ranks


@rule("lrn")
def lrn(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=(1,))))


@rule("reduce_window")
def reduce_window(v: OpView) -> Rule:
    """Dims without windows."""
    rows = zip(v.a.window, v.a.strides, v.a.low, v.a.high, strict=True)
    windows = [d for d, row in enumerate(rows) if row != (1, 1, 0, 0)]
    return Rule(tuple(v.same(skip=windows)), ((0,),) if v.a.kind == "sum" else ())


@rule("resize")
def resize(v: OpView) -> Rule:
    """Dims that keep their size, and are copied."""
    pairs = enumerate(zip(v.operands[0].shape, v.results[0].shape, strict=True))
    return Rule(tuple(v.same(skip=[d for d, (n, m) in pairs if resized(v.a, d, n, m)])))


@rule("dft")
def dft(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=(v.a.axis, v.results[0].rank - 1))))


@rule("col2im")
def col2im(v: OpView) -> Rule:
    return Rule(tuple(v.factor({0: 0}, {0: 0})))

"""Products, convolutions, attention and recurrent layers."""

from __future__ import annotations

from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.sharding.factors import Factor, OpView, Rule, Side, Strategy, rule
from xcc.passes.xt.sharding.placement import exact
from xcc.passes.xt.sharding.rules_pointwise import aligned

FILTERS = {"OIHW": (0, 1), "HWIO": (-1, -2), "OHWI": (0, -1)}
"""Where output and input channels are."""


@rule("dot_general")
def dot_general(v: OpView) -> Rule:
    """Batch and free dims; sums over a part of the contracted dims."""
    a, out = v.a, []
    for n, (i, j) in enumerate(zip(a.lhs_batch, a.rhs_batch, strict=True)):
        out += v.factor({0: i, 1: j}, {0: n})
    at = len(a.lhs_batch)
    for operand, used in ((0, (*a.lhs_batch, *a.lhs_contract)), (1, (*a.rhs_batch, *a.rhs_contract))):
        for d in range(v.operands[operand].rank):
            if d not in used:
                out += v.factor({operand: d}, {0: at})
                at += 1
    for i, j in zip(a.lhs_contract, a.rhs_contract, strict=True):
        out += v.factor({0: i, 1: j}, {}, "add")
    return Rule(tuple(out), ((0,), (1,)))


@rule("convolution")
def convolution(v: OpView) -> Rule:
    """The batch; outputs and inputs of a filter of one group; else groups."""
    if v.a.filter not in FILTERS:
        return Rule(())
    x, w = v.operands
    channel = 1 if v.a.layout == "NCHW" else x.rank - 1
    outs, ins = (d % w.rank for d in FILTERS[v.a.filter])
    out = v.factor({0: 0}, {0: 0})
    if v.a.groups == 1:
        out += v.factor({1: outs}, {0: channel}) + v.factor({0: channel, 1: ins}, {}, "add")
    else:
        out += v.factor({0: Side(channel), 1: Side(outs)}, {0: Side(channel)}, size=v.a.groups)
    return Rule(tuple(out), ((0,), (1,)), local=_local_groups)


def _local_groups(a: Attrs, v: OpView, s: Strategy, ranks: int) -> None:
    if a.groups != 1 and s.operands[1].kind == "split":
        a.groups //= ranks


@rule("deform_conv")
def deform_conv(v: OpView) -> Rule:
    """The batch: x, offsets and the mask have it."""
    return Rule(tuple(v.factor({v.at[n]: 0 for n in ("x", "offset", "mask") if n in v.at}, {0: 0})))


@rule("attention")
def attention(v: OpView) -> Rule:
    """The batch; heads, those of k and v with the queries' heads that read them; queries, where none is hidden from by
    its place; the features of v."""
    q, k, value = v.operands[:3]
    out: list[Factor] = []
    out += v.factor({0: 0, 1: 0, 2: 0, **_mask(v, 0)}, {0: 0})
    if exact(q.shape[1], k.shape[1]) is not None:
        out += v.factor({0: 1, 1: 1, 2: 1, **_mask(v, 1)}, {0: 1}, size=k.shape[1])
    if not v.a.causal:
        out += v.factor({0: 2, **_mask(v, 2)}, {0: 2})
    return Rule((*out, *v.factor({2: 3}, {0: 3})))


@rule("attention_with_sums")
def attention_with_sums(v: OpView) -> Rule:
    """The batch, and heads where as many are of k."""
    q, k = v.operands[:2]
    out = v.factor({0: 0, 1: 0, 2: 0, **_mask(v, 0)}, {0: 0, 1: 0})
    if q.shape[1] == k.shape[1]:
        out += v.factor({0: 1, 1: 1, 2: 1, **_mask(v, 1)}, {0: 1, 1: 1})
    return Rule(tuple(out))


@rule("attention_query_gradient", "attention_key_gradients")
def attention_gradients(v: OpView) -> Rule:
    """The batch, and heads where as many are of k: all operands and results have them first."""
    q, k = v.operands[1:3]
    shared = (0, 1) if q.shape[1] == k.shape[1] else (0,)
    results = range(len(v.results))
    return Rule(tuple(f for d in shared for f in v.factor({**dict.fromkeys(range(6), d), **_mask(v, d)},
                                                          dict.fromkeys(results, d))))


def _mask(v: OpView, dim: int) -> dict[int, Side | int]:
    """The mask's dim that is `dim` of the scores."""
    if "mask" not in v.at:
        return {}
    place = v.at["mask"]
    mask = v.operands[place]
    d = dim - (4 - mask.rank)
    return {} if d < 0 or mask.shape[d] == 1 else {place: d}


@rule("rotary")
def rotary(v: OpView) -> Rule:
    """All dims but the features; cos and sin are aligned at the right."""
    out: list[Factor] = []
    for d in range(v.results[0].rank - 1):
        sides = {n: aligned(v, n, d) for n in range(3)}
        if -1 not in sides.values():
            out += v.factor({n: s for n, s in sides.items() if s is not None}, {0: d})
    return Rule(tuple(out))


@rule("gru", "lstm", "rnn")
def recurrent(v: OpView) -> Rule:
    """The batch: dim 1 of x and the states, dim 0 of lengths."""
    places = {"x": 1, "lengths": 0, "h0": 1, "c0": 1}
    last = {n: 1 for n in range(1, len(v.results))}
    return Rule(tuple(v.factor({v.at[n]: d for n, d in places.items() if n in v.at}, {0: 2, **last})))

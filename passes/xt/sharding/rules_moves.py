"""Ops that move elements to places known when a model is compiled, and sources."""

from __future__ import annotations

import math

from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.sharding.factors import Factor, OpView, Rule, Side, Strategy, rule
from xcc.passes.xt.sharding.placement import exact
from xcc.passes.xt.sharding.rules_pointwise import broadcast_factors
from xcc.symbolic import Dim, floordiv

MOVED = ((0,),)


@rule("constant", "weight")
def source(v: OpView) -> Rule:
    """Each dim; a rank's part is cut when a model is compiled."""
    return Rule(tuple(f for d in range(v.results[0].rank) for f in v.factor({}, {0: d})))


@rule("iota")
def iota(v: OpView) -> Rule:
    """Numbers along the axis depend on the place."""
    return Rule(tuple(f for d in range(v.results[0].rank) if d != v.a.axis for f in v.factor({}, {0: d})))


@rule("broadcast")
def broadcast(v: OpView) -> Rule:
    return Rule(tuple(broadcast_factors(v, (0,))), MOVED, keeps=True)


@rule("transpose")
def transpose(v: OpView) -> Rule:
    return Rule(tuple(f for d, p in enumerate(v.a.perm) for f in v.factor({0: p}, {0: d})), MOVED, keeps=True)


@rule("reverse")
def reverse(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=v.a.axes)), MOVED, keeps=True)


@rule("reshape")
def reshape(v: OpView) -> Rule:
    """The indices that both shapes are made of, where dims are merged or cut apart."""
    return Rule(tuple(_refined(v, list(v.operands[0].shape), list(v.results[0].shape))), MOVED, keeps=True)


def _refined(v: OpView, old: list[Dim], new: list[Dim]) -> list[Factor]:
    """Factors from the major dims on, each as large as the rest of the dim of one side; where neither rest divides the
    other, the dims up to the next place in which both products are equal have none."""
    out: list[Factor] = []
    i = j = 0
    a, b = _Dim(old, 0), _Dim(new, 0)
    while i < len(old) and j < len(new):
        if a.rest == 1 or b.rest == 1:
            i, a = (i + 1, _Dim(old, i + 1)) if a.rest == 1 else (i, a)
            j, b = (j + 1, _Dim(new, j + 1)) if b.rest == 1 else (j, b)
            continue
        size = b.rest if exact(a.rest, b.rest) is not None else a.rest if exact(b.rest, a.rest) is not None else None
        if size is None:
            i, j = _next_equal(old, new, i, j, a.rest, b.rest)
            a, b = _Dim(old, i), _Dim(new, j)
            continue
        out += v.factor({0: Side(i, a.outer)}, {0: Side(j, b.outer)}, size=size)
        a.take(size)
        b.take(size)
    return out


class _Dim:
    """A dim of which the major factors are taken away one by one."""

    def __init__(self, shape: list[Dim], d: int) -> None:
        self.rest: Dim = shape[d] if d < len(shape) else 1
        self.outer: Dim = 1

    def take(self, size: Dim) -> None:
        self.rest, self.outer = floordiv(self.rest, size), self.outer * size


def _next_equal(old: list[Dim], new: list[Dim], i: int, j: int, a: Dim, b: Dim) -> tuple[int, int]:
    """The dims from `i` and `j` on behind which both shapes have gone equally far."""
    seen: dict[Dim, int] = {}
    product = a
    for end in range(i + 1, len(old) + 1):
        seen[product] = end
        product = product * (old[end] if end < len(old) else 1)
    product = b
    for end in range(j + 1, len(new) + 1):
        if product in seen:
            return seen[product], end
        product = product * (new[end] if end < len(new) else 1)
    return len(old), len(new)


@rule("slice")
def slice_(v: OpView) -> Rule:
    """Dims taken whole; of others what begins and ends at segments."""
    out: list[Factor] = []
    for d, (size, low, high, step) in enumerate(zip(v.operands[0].shape, v.a.starts, v.a.limits, v.a.strides,
                                                    strict=True)):
        if low == 0 and high - size == 0 and step == 1:
            out += v.factor({0: d}, {0: d})
        elif step == 1 and all(isinstance(n, int) for n in (size, low, high)) and high > low:
            part = math.gcd(*map(int, (size, low, high)))
            out += v.factor({0: Side(d, size // part)}, {0: Side(d, (high - low) // part)}, size=part)
    return Rule(tuple(out), MOVED, keeps=True, local=_local_slice)


def _local_slice(a: Attrs, v: OpView, s: Strategy, ranks: int) -> None:
    """A split dim has as many segments as before, each shorter."""
    if s.results[0].kind == "split":
        d = s.results[0].dim
        for name in ("starts", "limits"):
            setattr(a, name, tuple(floordiv(n, ranks) if i == d else n for i, n in enumerate(getattr(a, name))))


@rule("concatenate")
def concatenate(v: OpView) -> Rule:
    """Other dims; along the axis the segments that all operands are made of."""
    axis, count = v.a.axis, len(v.operands)
    out: list[Factor] = []
    for d in range(v.results[0].rank):
        sizes = [t.shape[d] for t in v.operands]
        if d != axis:
            out += v.factor(dict.fromkeys(range(count), d), {0: d})
        elif all(isinstance(n, int) and n > 0 for n in sizes):
            part = math.gcd(*sizes)  # type: ignore[arg-type]
            out += v.factor({i: Side(d, n // part) for i, n in enumerate(sizes)},
                            {0: Side(d, sum(sizes) // part)}, size=part)
    return Rule(tuple(out), (tuple(range(count)),))


@rule("pad")
def pad(v: OpView) -> Rule:
    changed = [d for d, (low, high, inner) in enumerate(zip(v.a.low, v.a.high, v.a.interior, strict=True))
               if (low, high, inner) != (0, 0, 0)]
    return Rule(tuple(v.same(skip=changed)), MOVED if v.a.mode != "constant" or v.a.value == 0 else ())


@rule("stretch", "unpack")
def stretched(v: OpView) -> Rule:
    """Each element of x becomes neighbours along the axis."""
    axis, sizes = v.a.axis, (v.operands[0].shape[v.a.axis], v.results[0].shape[v.a.axis])
    out = v.same(skip=(axis,))
    if exact(sizes[1], sizes[0]) is not None:
        out += v.factor({0: Side(axis)}, {0: Side(axis)}, size=sizes[0])
    return Rule(tuple(out), MOVED if v.name == "stretch" else (), local=_local_size)


def _local_size(a: Attrs, v: OpView, s: Strategy, ranks: int) -> None:
    if s.results[0].kind == "split" and s.results[0].dim == a.axis:
        a.size = (floordiv(a.size[0], ranks),)

"""Ops that work element by element, with numpy's broadcasting; and those that ranks do together along another axis."""

from __future__ import annotations

from xcc.dialects.xt.types import is_float
from xcc.passes.xt.sharding.factors import Factor, OpView, Rule, Side, rule

LINEAR: dict[str, tuple[tuple[int, ...], ...]] = {
    "add": ((0, 1),), "sub": ((0, 1),), "neg": ((0,),), "mul": ((0,), (1,)), "select": ((1, 2),)}


def aligned(v: OpView, operand: int, dim: int) -> int | None:
    """The dim of an operand that is dim `dim` of the first result by numpy's rule; None where it is stretched, -1 where
    sizes are not known to be equal."""
    t, result = v.operands[operand], v.results[0]
    d = dim - (result.rank - t.rank)
    if d < 0 or (t.shape[d] == 1 and result.shape[dim] != 1):
        return None
    return d if t.shape[d] - result.shape[dim] == 0 else -1


def broadcast_factors(v: OpView, operands: tuple[int, ...], skip: tuple[int, ...] = ()) -> list[Factor]:
    """A factor for each dim of the result but `skip`; `operands` are aligned at the right, others have none of them."""
    out: list[Factor] = []
    for d in range(v.results[0].rank):
        sides = {n: aligned(v, n, d) for n in operands}
        if d not in skip and -1 not in sides.values():
            out += v.factor({n: s for n, s in sides.items() if s is not None}, dict.fromkeys(range(len(v.results)), d))
    return out


@rule("pointwise", "gelu")
def pointwise(v: OpView) -> Rule:
    """Each dim of the result, and of the operands that are not stretched along it."""
    floats = bool(v.operands) and is_float(v.operands[0].dtype) and is_float(v.results[0].dtype)
    linear = LINEAR.get(v.name, ())
    if v.name in ("convert", "div"):
        linear = ((0,),) if floats else ()
    return Rule(tuple(broadcast_factors(v, tuple(range(len(v.operands))))), linear)


@rule("random_uniform", "random_normal")
def random(v: OpView) -> Rule:
    """An element's number depends on its place among all of them."""
    return Rule(())


@rule("quantize", "dequantize")
def quantised(v: OpView) -> Rule:
    """Scales are scalars, or vectors along an axis, or of x's shape with a number a block."""
    x, scale = v.operands[0], v.operands[1]
    scales = [n for n in range(1, len(v.operands))]
    if not scale.rank:
        return Rule(tuple(v.same()))
    axis = v.a.axis
    out = []
    for d in range(x.rank):
        if d != axis:
            beside = dict.fromkeys(scales, d) if v.a.block else {}
            out += v.factor({0: d, **beside}, {0: d})
        elif not v.a.block:
            out += v.factor({0: d, **dict.fromkeys(scales, 0)}, {0: d})
        elif isinstance(x.shape[d], int) and x.shape[d] % v.a.block == 0:
            out += v.factor({0: Side(d), **dict.fromkeys(scales, Side(d))}, {0: Side(d)}, size=scale.shape[d])
    return Rule(tuple(out))


@rule("all_reduce", "permute", "collective_broadcast")
def together(v: OpView) -> Rule:
    """Along another axis of the mesh: each dim."""
    return Rule(tuple(v.same()), ((0,),) if getattr(v.a, "combine", "add") == "add" else ())


@rule("all_gather", "reduce_scatter")
def gathered(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=(v.a.dim,))), ((0,),) if getattr(v.a, "combine", "add") == "add" else ())


@rule("all_to_all")
def exchanged(v: OpView) -> Rule:
    return Rule(tuple(v.same(skip=(v.a.split, v.a.concat))), ((0,),))

"""Which relations of sizes hold for all sizes, where they have least and largest of sizes in them.

torch bounds the terms of a sum one by one, and does not find that ``s - Min(1, s)``, the length of ``torch.diff``, is
not negative: where a slice ends is then a number that only a run can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import sympy
import torch
from torch.fx.experimental import _config as sizes
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

__all__ = ["decided", "extreme_of_sizes", "undivided", "within_range"]

_Ranges: TypeAlias = "tuple[tuple[sympy.Basic, ValueRanges[sympy.Expr]], ...]"

_TERMS = 6
"""Least and largest of sizes that a difference is taken apart by, one inside the other; each doubles the work."""


def extreme_of_sizes(size: Any) -> bool:
    """Whether there is a least or largest of sizes in it, which torch does not simplify."""
    return isinstance(size, torch.SymInt) and bool(size.node.expr.has(Min, Max))


def decided(env: ShapeEnv, condition: sympy.Basic, ranges: Mapping[Any, Any] | None = None) -> bool | None:
    """What the condition is for all sizes in the ranges, those of `env` where none are given; None where it depends on
    them, or that is not found.

        s - Min(1, s) >= 0      Min(4, s) <= s      s + Min(1, s) > s - 1       are True
    """
    ranges = env.var_to_range if ranges is None else ranges
    if isinstance(condition, (sympy.And, sympy.Or)):
        parts = [decided(env, part, ranges) for part in condition.args]
        settles = isinstance(condition, sympy.Or)
        return settles if settles in parts else (None if None in parts else not settles)
    if not isinstance(condition, sympy.core.relational.Relational):
        return None
    difference = condition.lhs - condition.rhs
    if not _extremes(difference) or not difference.free_symbols <= ranges.keys():
        return None     # torch bounds such a sum itself
    least, most = _bounds(ranges, difference)
    if isinstance(condition, (sympy.Eq, sympy.Ne)):
        equal = True if least == most == 0 else False if least > 0 or most < 0 else None
        return equal if equal is None else equal == isinstance(condition, sympy.Eq)
    if isinstance(condition, (sympy.Le, sympy.Lt)):
        least, most = -most, -least
    strict = isinstance(condition, sympy.StrictGreaterThan | sympy.StrictLessThan)
    holds, fails = (least > 0, most <= 0) if strict else (least >= 0, most < 0)
    return True if holds else (False if fails else None)


def within_range(number: torch.SymInt, low: int, high: int) -> bool:
    """Whether the number is found to be in a range, both ends included, whatever its sizes are."""
    env, expr = number.node.shape_env, number.node.expr
    if not expr.free_symbols <= env.var_to_range.keys():
        return False
    least, most = _bounds(env.var_to_range, expr)
    return bool(least >= low and most <= high)


def undivided(isolate: Callable[..., sympy.Basic]) -> Callable[..., sympy.Basic]:
    """torch's ``_try_isolate_lhs``, which divides a relation by factors that are not negative: its sizes are positive.
    A size that may be 0 stays: ``s*t <= 0`` says nothing of s where t is 0."""

    def solved(relation: sympy.Basic, symbol: sympy.Basic, **options: bool) -> sympy.Basic:
        if sizes.backed_size_oblivious and isinstance(relation, sympy.core.relational.Relational):
            terms = [t for t in sympy.Add.make_args(relation.lhs) if t.has(symbol)]
            factors = [f for t in terms for f in sympy.Mul.make_args(t) if not f.has(symbol)]
            if any(f.is_zero is not False for f in factors):
                return relation
        return isolate(relation, symbol, **options)

    return solved


def _bounds(ranges: Mapping[Any, Any], expr: sympy.Expr) -> tuple[Any, Any]:
    own = tuple((s, ranges[s]) for s in sorted(expr.free_symbols, key=str))
    return _least(expr, own, _TERMS), -_least(-expr, own, _TERMS)


@lru_cache(1 << 12)
def _least(expr: sympy.Expr, ranges: _Ranges, terms: int) -> Any:
    """A lower bound of `expr`; of a sum with a Min or Max, by the sums with each of its arguments in its place."""
    extremes = _extremes(expr) if terms else []
    if not extremes:
        return _lower(expr, ranges)
    if _has_no_least(expr, extremes, ranges):
        return -int_oo
    factor, extreme = extremes[0].as_coeff_Mul()
    bounds = [_least(sympy.expand(expr - extremes[0] + factor * a), ranges, terms - 1) for a in extreme.args]
    smaller = isinstance(extreme, Min) == (factor > 0)
    return min(bounds) if smaller else max(bounds)


def _extremes(expr: sympy.Expr) -> list[sympy.Expr]:
    """The terms of a sum that are a Min or Max, times a number."""
    return [t for t in sympy.Add.make_args(expr) if isinstance(t.as_coeff_Mul()[1], (Min, Max))]


def _has_no_least(expr: sympy.Expr, extremes: Sequence[sympy.Expr], ranges: _Ranges) -> bool:
    """Whether a term of the sum has no lower bound, and no argument of an extreme has the like of it to take it away:
    ``-s*Min(4, t)`` of ``Max(1, t) - s*Min(4, t)``."""
    return any(term not in extremes and not any(e.has(term.as_coeff_Mul()[1]) for e in extremes)
               and _lower(term, ranges) == -int_oo for term in sympy.Add.make_args(expr))


@lru_cache(1 << 12)
def _lower(expr: sympy.Expr, ranges: _Ranges) -> Any:
    return bound_sympy(expr, dict(ranges)).lower

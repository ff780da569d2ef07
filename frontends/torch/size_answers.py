"""Answers to what torch's code asks of sizes while it traces, kept as long as nothing new is known of them.

Torch asks the same few questions thousands of times: whether a size is 1, whether a stride is at least another one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sympy
from torch._dynamo.source import TensorProperty, TensorPropertySource
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import CeilToInt, FloorDiv, FloorToInt, Max, Min, RoundToInt, TruncToInt
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from xcc.frontends.torch.nested_sizes import Patience
from xcc.frontends.torch.size_order import decided

__all__ = ["UNSIMPLIFIED", "is_of_numbers", "is_of_ones", "is_size", "is_stride", "learned", "of_all", "of_elements",
           "settle"]

UNSIMPLIFIED = (FloorDiv, Max, Min, CeilToInt, FloorToInt, RoundToInt, TruncToInt)
"""What torch leaves as it is where it has found that it is 1."""

_SOME: Any = ValueRanges(1, int_oo)


class _Kept:
    """A function's answers for the environment that asked last, in the state that it had."""

    def __init__(self, function: Callable[[ShapeEnv, sympy.Basic], Any]) -> None:
        self._function = function
        self._env: Any = None       # a weak reference
        self._version = -1
        self._answers: dict[sympy.Basic, Any] = {}

    def __call__(self, env: ShapeEnv, expr: sympy.Basic) -> Any:
        if self._env is None or self._env() is not env or self._version != env._version_counter:
            self._env, self._version, self._answers = weakref.ref(env), env._version_counter, {}
        if expr not in self._answers:
            self._answers[expr] = self._function(env, expr)
        return self._answers[expr]


def of_elements(env: ShapeEnv, node: SymNode) -> Any:
    """What holds of all tensors that have elements; None where their sizes decide."""
    if not isinstance(node.hint, bool):
        return None
    Patience.settle(env, node)
    return _OF_ELEMENTS(env, node.expr)


def of_all(env: ShapeEnv, condition: sympy.Basic) -> bool | None:
    """``decided`` for the sizes of `env`."""
    answer: bool | None = _OF_ALL(env, condition)
    return answer


def learned(env: ShapeEnv, node: SymNode, answer: object) -> object:
    """The answer, which is guarded. A least or a quotient of sizes that is 1 here (``x[:, 1:2]``, where it is
    broadcast) is 1 from here on: torch, which replaces no symbol for it, keeps what it found before."""
    if answer and isinstance(node.expr, sympy.Eq) and node.expr.has(*UNSIMPLIFIED):
        env._version_counter += 1
    return answer


def is_size(env: ShapeEnv, symbol: sympy.Symbol) -> bool:
    return _is_property(env, symbol, TensorProperty.SIZE)


def is_stride(env: ShapeEnv, symbol: sympy.Symbol) -> bool:
    return _is_property(env, symbol, TensorProperty.STRIDE)


def _is_property(env: ShapeEnv, symbol: sympy.Symbol, kind: TensorProperty) -> bool:
    return any(isinstance(s, TensorPropertySource) and s.prop is kind for s in env.var_to_sources.get(symbol, ()))


def is_of_numbers(node: SymNode) -> bool:
    """Whether a number of the user's that is no size is -1, which in a shape stands for what the others leave; or of
    such numbers the length of a slice (``k - max(k - 1, 0)``) is what it is asked for."""
    expr, env = node.expr, node.shape_env
    if env is None or not isinstance(expr, sympy.Eq) or any(is_size(env, s) for s in expr.free_symbols):
        return False
    return sympy.S.NegativeOne in expr.args or node.hint is True and expr.has(Min, Max)


def settle(env: ShapeEnv, node: SymNode) -> None:
    """A size that is guarded to be 0 or 1 is that number from here on: torch puts no number below 2 in the place of one
    that is as any other."""
    if node.hint is True and isinstance(node.expr, sympy.Eq) and not env._suppress_guards_tls():
        env.size_like.difference_update(node.expr.args)


@lru_cache(1 << 12)
def is_of_ones(guard: Any) -> bool:
    """Whether the relation compares a product of sizes with a number, holds where all are 2 or more, and not for 1.

        Ne(1024*s, 1024), 2 <= s, Ne(s*t - 1, 0)     but not     Ne(s, 4), s <= 8, Ne(s, t), Ne(s, 0)

    Strides are products of ``Max(1, s)``, which is ``s`` for these.
    """
    if not isinstance(guard, sympy.core.relational.Relational) or not (guard.lhs.is_number or guard.rhs.is_number):
        return False
    number, term = (guard.lhs - guard.rhs).as_coeff_Add()
    factor, product = term.as_coeff_Mul()
    powers = product.as_powers_dict()
    if not all(_is_counted(base) and p.is_Integer and p > 0 for base, p in powers.items()):
        return False
    smallest = 2 ** sum(powers.values())
    holds = [bool(guard.func(factor * n + number, 0)) for n in (1, smallest, smallest << 62)]
    return holds == [False, True, True]


def _is_counted(term: sympy.Basic) -> bool:
    """Whether it is a size, or ``Max(1, s)`` of one."""
    parts = term.args if isinstance(term, Max) and term.args[0] == 1 else (1, term)
    return len(parts) == 2 and parts[1].is_Symbol


def _of_elements(env: ShapeEnv, expr: sympy.Basic) -> Any:
    Patience.spend(env, expr)
    ranges = {s: env.var_to_range[s] for s in sorted(expr.free_symbols, key=str) if s in env.var_to_range}
    least = {s: r & _SOME if is_size(env, s) and r.upper >= 1 else r for s, r in ranges.items()}
    known = env._maybe_evaluate_static(expr, var_to_range=tuple(least.items()))
    return decided(env, expr, least) if known is None else known


_OF_ELEMENTS, _OF_ALL = _Kept(_of_elements), _Kept(decided)

"""Names for torch's symbolic sizes: the user's own where torch still has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import sympy
import torch
from torch.fx.experimental.sym_node import SymNode

from xcc import symbolic
from xcc.frontends.torch import compat
from xcc.frontends.torch.graph import HIGHEST
from xcc.frontends.torch.size_answers import UNSIMPLIFIED
from xcc.frontends.torch.sizes import dim_of
from xcc.symbolic import Dim

__all__ = ["Symbols"]


class Symbols:
    """torch's symbols and expressions -> dims. Every symbol here is bare in a dim of an input, or an input itself."""

    def __init__(self, known: dict[sympy.Symbol, Dim], limits: dict[str, tuple[int, int | None]], guarded: bool = False
                 ) -> None:
        """`guarded`: what torch holds of symbols, its guards included, is so wherever the graph runs."""
        self.known = known
        self.limits = limits
        self._guarded = guarded
        self._made: dict[sympy.Expr, Dim] = {}      # as long as no symbol joins the known ones

    @classmethod
    def of_inputs(cls, inputs: Sequence[tuple[str, Any]], ranges: Mapping[Any, Any], plain: bool = False) -> Symbols:
        """From the values of the placeholders. `plain`: of a graph that Dynamo guards; symbols are s0, s1, ...

        A symbol is called as the user called it (``Dim("batch")``), or ``x_dim0`` for dim 0 of input `x`. Where an
        input's dim is an expression of a symbol that no dim is bare, the dim gets the name, and the symbol is computed.
        """
        places = list(_places(inputs))
        dims: list[Any] = [d for _, v in inputs if isinstance(v, torch.Tensor) for d in v.shape]
        sizes = {d.node.expr for d in dims if isinstance(d, torch.SymInt)}
        env = _environment(inputs)
        given = compat.debug_names(env) if env is not None else {}
        asked = compat.var_ranges(env) if env is not None else {}
        known: dict[sympy.Symbol, Dim] = {}
        limits: dict[str, tuple[int, int | None]] = {}
        for bare in (True, False):
            for expr, where in places:
                if expr in known or expr.is_Symbol != bare or (not bare and not expr.free_symbols - known.keys()):
                    continue
                name = f"s{len(limits)}" if plain else given.get(str(expr), where) if bare else where
                name = _unused(name, limits)
                known[expr] = symbolic.sym(name)
                limits[name] = _limits(ranges.get(expr), 0) if expr in sizes else \
                    _limits(ranges.get(expr, asked.get(expr)), -HIGHEST)
                if not bare:
                    _solve(expr, known)
        return cls(known, limits, guarded=plain)

    def dim(self, value: Any) -> Dim:
        """A size of torch (int or SymInt) as a dim; :class:`NoSize` where it cannot be one."""
        if not isinstance(value, torch.SymInt):
            return int(value)
        expr = value.node.expr
        if expr not in self._made:
            self._made[expr] = 1 if self._guarded and _is_one(value.node) else dim_of(expr, self.known)
        return self._made[expr]

    def new(self, size: torch.SymInt, hint: str) -> str:
        """The name of a size that only a run can tell."""
        name = _unused(hint, self.limits)
        expr = size.node.expr
        self.define(expr, symbolic.sym(name))
        self.limits[name] = _limits(compat.var_ranges(size.node.shape_env).get(expr), 0)
        return name

    def define(self, expr: sympy.Expr, dim: Dim) -> None:
        """From now on torch's symbol `expr` is `dim`."""
        self.known[expr] = dim
        self._made.clear()

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and largest value of each symbol."""
        return {name: (low, inf if high is None else high) for name, (low, high) in self.limits.items()}

    def bounds(self) -> tuple[tuple[str, int, int | None], ...]:
        """(symbol, least, most). Torch's least of 2 is a habit of export and no promise: 0 and 1 run too."""
        return tuple((name, low, high) for name, (low, high) in self.limits.items())


def _places(inputs: Sequence[tuple[str, Any]]) -> Any:
    """Each symbolic size of an input, and what to call it."""
    for name, value in inputs:
        if isinstance(value, torch.SymInt) and not value.node.expr.is_Integer:
            yield value.node.expr, name
        elif isinstance(value, torch.Tensor):
            for i, d in enumerate(value.shape):
                if isinstance(d, torch.SymInt) and not d.node.expr.is_Integer:
                    yield d.node.expr, f"{name}_dim{i}"


def _environment(inputs: Sequence[tuple[str, Any]]) -> Any:
    """Where torch keeps what it knows of symbols, None where no input has one."""
    for _, value in inputs:
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
        mode = getattr(value, "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env
    return None


def _is_one(node: SymNode) -> bool:
    """Whether a size with a least, a largest or a quotient of sizes in it, which torch does not simplify, is 1:
    ``n - max(n - 1, 0)``, of ``x[-1:]``, or ``n // m``, of ``view(m, -1)``, where the call that is traced had it
    broadcast."""
    env = node.shape_env
    if env is None or node.hint != 1 or not node.expr.has(*UNSIMPLIFIED):
        return False
    if env._maybe_evaluate_static(sympy.Eq(node.expr, 1)) == sympy.true:
        return True
    less = sympy.expand(node.expr - 1)
    guards = (g.expr for g in env.guards if isinstance(g.expr, sympy.Eq))
    return any(sympy.expand(g.lhs - g.rhs) in (less, -less) for g in guards)


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    own, n = name, 0
    while own in taken:
        n += 1
        own = f"{name}_{n}"
    return own


def _limits(found: Any, smallest: int) -> tuple[int, int | None]:
    """Of torch's range, whose lower bounds of 1 and 2 are habit; `smallest` where it has none."""
    if found is None:
        return smallest, None
    low, high = found.lower, found.upper
    least = smallest if not low.is_Integer else 0 if 0 <= int(low) <= 2 else max(int(low), smallest)
    return least, int(high) if high.is_Integer and int(high) < HIGHEST else None


def _solve(expr: sympy.Expr, known: dict[sympy.Symbol, Dim]) -> None:
    """Makes the one symbol of ``a*s + b`` known from the dim that the whole is."""
    free = [s for s in expr.free_symbols if s not in known]
    if len(free) != 1:
        return
    symbol = free[0]
    b = expr.subs(symbol, 0)
    a = sympy.expand(expr - b).coeff(symbol)
    if a.is_Integer and sympy.expand(a * symbol + b - expr) == 0 and int(a) > 0:
        known[symbol] = symbolic.floordiv(known[expr] - dim_of(b, known), int(a))

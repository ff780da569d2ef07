"""What keeps a trace short where sizes are quotients, remainders, least and largest of such sizes.

    shifted windows of padded images:   384*(s - 1)*Max(1, (s + (4 - s % 4) % 4)//4 + ...) + ...

To ask torch what holds of these takes milliseconds each, and it asks thousands of times. Its cache of fake tensors asks
the most, as it makes each result once more, and is left out for them. A model that takes too long all the same is
compiled once for each value of the sizes that are nested the most; the others, the batch for one, stay free.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import ClassVar, ParamSpec, TypeVar, cast

import sympy
import torch
from torch._subclasses.fake_tensor import _BypassDispatchCache
from torch.fx.experimental import _config as sizes
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod

from xcc.frontends.torch.fx_facts import hint_of

__all__ = ["Patience", "uncached"]

_Given = ParamSpec("_Given")
_Entry = TypeVar("_Entry")

_PATIENCE = 16_000
"""Operations in what may have been asked of nested sizes before one is settled: some 10 s of processor time."""

_LARGE = 40
"""Operations in a question that counts."""

_PARTS = (CleanDiv, FloorDiv, Max, Min, Mod, PythonMod)


def uncached(make_entry: Callable[_Given, _Entry]) -> Callable[_Given, _Entry]:
    """``FakeTensorMode._make_cache_entry`` that keeps no result of such sizes; the result is its last argument."""

    def entry(*args: _Given.args, **kwargs: _Given.kwargs) -> _Entry:
        if sizes.backed_size_oblivious and any(map(_has_parts, _pytree.tree_leaves(args[-1]))):
            raise _BypassDispatchCache("sizes of parts of sizes")
        return make_entry(*args, **kwargs)

    return entry


def _has_parts(value: object) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) and n.node.expr.has(*_PARTS)
                                                   for n in (*value.shape, *value.stride()))


class Patience:
    """How much may still be asked in traces of a model. At its end large questions are made smaller, in this trace and
    all that follow: parts between graph breaks, and other sizes of those that have become numbers."""

    _current: ClassVar[Patience | None] = None

    def __init__(self) -> None:
        self._env: weakref.ref[ShapeEnv] | None = None
        self._spent = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Traces in here are of the model."""
        before, Patience._current = Patience._current, self
        try:
            yield
        finally:
            Patience._current = before

    @classmethod
    def spend(cls, env: ShapeEnv, expr: sympy.Basic) -> None:
        """`expr` is asked, and its answer is not kept."""
        own = cls._current
        if own is None or not _is_large(expr):
            return
        if not own.is_over and (own._env is None or own._env() is not env):
            own._env, own._spent = weakref.ref(env), 0
        own._spent += _operations(expr)

    @property
    def is_over(self) -> bool:
        return self._spent >= _PATIENCE

    @classmethod
    def settle(cls, env: ShapeEnv, node: SymNode) -> None:
        """Where patience is at its end, makes the sizes that a large question owes the most to numbers, with guards."""
        if cls._current is None or not cls._current.is_over or env._suppress_guards_tls() or env.frozen:
            return
        settled = []
        while _is_large(expr := node.expr) and (size := _largest(env, expr)) is not None:
            if size != size.node.hint or size.node.expr.free_symbols:
                break
            settled.append(size.node._expr)
        if settled:
            names = ", ".join(env.var_to_sources[s][0].name for s in settled)
            warnings.warn("to trace this model with all sizes free takes minutes, so deep do they nest: it is compiled "
                          f"once for each value of {names}. torch._dynamo.mark_dynamic(tensor, dim) keeps a size free, "
                          "however long it takes", stacklevel=2)


def _largest(env: ShapeEnv, expr: sympy.Basic) -> torch.SymInt | None:
    """The size of the inputs that the most of the nested parts of `expr` are made of."""
    nested = _nested(expr)
    made = {s for part in nested for s in part.free_symbols if env.var_to_sources.get(s)} - set(_insisted(env))
    found = {s: size for s in sorted(made, key=str) if (hint_of(size := _of_symbol(env, s)) or 0) > 1}
    if not found:
        return None
    return found[max(found, key=lambda s: sum(_operations(p) for p in nested if s in p.free_symbols))]


def _of_symbol(env: ShapeEnv, symbol: sympy.Symbol) -> torch.SymInt:
    return cast(torch.SymInt, env.create_symintnode(symbol, hint=None))


def _insisted(env: ShapeEnv) -> Iterator[sympy.Symbol]:
    """The sizes that the user has marked as dynamic."""
    for tracked in env.tracked_fakes or ():
        constraints = getattr(tracked.symbolic_context, "constraint_sizes", ())
        for size, constraint in zip(getattr(tracked.fake, "shape", ()), constraints, strict=False):
            if constraint is not None and not constraint.warn_only and isinstance(size, torch.SymInt):
                yield from size.node.expr.free_symbols


@lru_cache(1 << 14)
def _operations(expr: sympy.Basic) -> int:
    return 1 + sum(map(_operations, expr.args))


@lru_cache(1 << 14)
def _nested(expr: sympy.Basic) -> tuple[sympy.Basic, ...]:
    """Parts of sizes that have parts in them."""
    return tuple(part for part in expr.atoms(*_PARTS) if any(a.has(*_PARTS) for a in part.args))


def _is_large(expr: sympy.Basic) -> bool:
    """Whether the question is one of nested sizes, and not a short one."""
    return _operations(expr) > _LARGE and bool(_nested(expr))

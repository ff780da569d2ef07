"""Builds an FX graph of torch functions node by node, each run by eager torch as it is added.

A graph has two sets of sizes of its symbolic dims, and each value its tensor for both: its *worlds*. Views share memory
with what they are views of, so that a step that writes in place changes every value that it changes in a run. Ops that
are not continuous take only values that no rounding has touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _pytree

LIMIT = 100.0
"""Values beyond this end a chain: what follows would be infinite, or all rounding."""
SIZES = {"n": (5, 9), "m": (4, 7)}


@dataclass(eq=False)
class Value:
    """`exact`: no float was rounded on the way, so any runtime has these bits."""

    node: Any
    worlds: list[Any]
    exact: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.worlds[0].shape)

    @property
    def rank(self) -> int:
        return int(self.worlds[0].ndim)

    @property
    def dtype(self) -> Any:
        return self.worlds[0].dtype

    @property
    def is_float(self) -> bool:
        return bool(self.dtype.is_floating_point)

    @property
    def is_int(self) -> bool:
        return not self.is_float and self.dtype != torch.bool

    @property
    def memory(self) -> int:
        """What values that share memory have in common."""
        return int(self.worlds[0].untyped_storage().data_ptr())

    @property
    def overlaps(self) -> bool:
        """Whether it has one element at two places, as after expand: torch does not write such tensors."""
        return any(s == 0 and d > 1 for s, d in zip(self.worlds[0].stride(), self.worlds[0].shape, strict=True)) \
            or torch._debug_has_internal_overlap(self.worlds[0]) != 0

    def static(self, axis: int) -> bool:
        """Whether the dim has one size in both sets of sizes."""
        return bool(self.worlds[0].shape[axis] == self.worlds[1].shape[axis])


class Input(NamedTuple):
    """`dims` are numbers and names of SIZES; integers are in [0, below) where that is not 0."""

    value: Value
    dims: tuple[int | str, ...]
    below: int


@dataclass
class Builder:
    """A graph that grows; `largest` is the magnitude that its values reach, `kind` the type of most of its floats."""

    rng: np.random.Generator
    limit: int = 3000
    symbolic: bool = False
    graph: Any = field(default_factory=torch.fx.Graph)
    values: list[Value] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    largest: float = 2.0
    kind: Any = torch.float32

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def int(self, low: int, high: int) -> int:
        """In [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def value(self, fits: Callable[[Value], bool]) -> Value | None:
        """One of the values that fit, late ones more often."""
        found = [v for v in self.values if fits(v)]
        if not found:
            return None
        weights = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def any(self, rank: int = 0, kind: str = "") -> Value | None:
        """A value of `rank` dims or more; `kind`: float, int, exact, written (torch may write it in place)."""
        tests = {"": True, "float": lambda v: v.is_float, "int": lambda v: v.is_int, "exact": lambda v: v.exact,
                 "written": lambda v: not v.overlaps}
        test: Any = tests[kind]
        return self.value(lambda v: v.rank >= rank and (test is True or test(v)))

    def partner(self, x: Value, fits: Callable[[Value], bool] = lambda v: True) -> Any:
        """A value that broadcasts with `x` to a size that it or `x` has, or a number."""
        def broadcasts(v: Value) -> bool:
            try:
                return all(torch.broadcast_shapes(a.shape, b.shape) in (a.shape, b.shape)
                           for a, b in zip(v.worlds, x.worlds, strict=True))
            except RuntimeError:
                return False
        y = self.value(lambda v: fits(v) and broadcasts(v)) if self.chance(0.8) else None
        if y is not None:
            return y
        return self.int(1, 3) if not x.is_float or self.chance(0.3) else self.pick([0.5, -1.25, 2.0])

    def numbers(self, shape: Iterable[int], dtype: Any, below: int = 0) -> Any:
        """`below`: integers in [0, below)."""
        size = tuple(shape)
        if below:
            return torch.from_numpy(np.asarray(self.rng.integers(0, below, size))).to(dtype)
        if dtype == torch.bool:
            return torch.from_numpy(np.asarray(self.rng.random(size) < 0.5))
        if not dtype.is_floating_point:
            return torch.from_numpy(np.asarray(self.rng.integers(0 if dtype == torch.uint8 else -4, 9, size))).to(dtype)
        return torch.from_numpy(np.asarray(self.rng.uniform(-2, 2, size))).to(dtype)

    def input(self, dims: Sequence[int | str], dtype: Any, below: int = 0) -> Value:
        """A placeholder and its numbers."""
        shapes = [[d if isinstance(d, int) else SIZES[d][i] for d in dims] for i in range(2)]
        v = Value(self.graph.placeholder(f"x{len(self.inputs)}"), [self.numbers(s, dtype, below) for s in shapes])
        self.inputs.append(Input(v, tuple(dims), below))
        self.values.append(v)
        return v

    def emit(self, target: Any, *args: Any, exact: bool = False, **kwargs: Any) -> list[Value]:
        """Adds a call of a function, or of a method by its name, and its results; nothing where torch refuses it or
        the results are too many or too large. `exact`: floats that it gives are rounded only where its operands are."""
        results = self._run(target, args, kwargs)
        if not results:
            return []
        node = self._node(target, args, kwargs)
        kept = all(v.exact for v in _values(args, kwargs))
        out = []
        for n, pair in enumerate(zip(*map(_tensors, results), strict=True)):
            one = node if isinstance(results[0], torch.Tensor) else self.graph.call_function(getitem, (node, n))
            out.append(Value(one, list(pair), kept and (exact or not pair[0].dtype.is_floating_point)))
        self.values += out
        return out

    def write(self, target: Any, x: Value, *args: Any, exact: bool = False, **kwargs: Any) -> None:
        """Adds a call that writes into `x`, and into all that shares memory with it."""
        given = _values(args, kwargs)
        if x.overlaps or any(v.memory == x.memory for v in given) or not self._run(target, (x, *args), kwargs):
            return
        self._node(target, (x, *args), kwargs)
        rounded = not all(v.exact for v in given) or not exact and x.is_float
        for v in self.values:
            v.exact = v.exact and not (rounded and v.memory == x.memory)

    def _run(self, target: Any, args: Any, kwargs: Any) -> list[Any]:
        """What the call gives in both worlds; nothing where it cannot be in the graph."""
        try:
            tried = [_call(target, *_world(i, args, kwargs), copied=True) for i in range(2)]
            if len(_tensors(tried[0])) == len(_tensors(tried[1])) \
                    and all(self._fits(t) for world in tried for t in _tensors(world)):
                return [_call(target, *_world(i, args, kwargs)) for i in range(2)]
        except (RuntimeError, IndexError, TypeError, ValueError):
            pass
        return []

    def _fits(self, t: Any) -> bool:
        if t.numel() > self.limit or t.is_complex():
            return False
        if t.dtype.is_floating_point and t.numel():
            most = float(t.abs().max())
            if not most <= LIMIT:
                return False
            self.largest = max(self.largest, most)
        return True

    def _node(self, target: Any, args: Any, kwargs: Any) -> Any:
        plain, named = _pytree.tree_map_only(Value, lambda v: v.node, (args, kwargs))
        if isinstance(target, str):
            return self.graph.call_method(target, plain, named)
        return self.graph.call_function(target, plain, named)


def _values(*args: Any) -> list[Value]:
    return [a for a in _pytree.tree_leaves(args) if isinstance(a, Value)]


def _world(i: int, args: Any, kwargs: Any) -> Any:
    return _pytree.tree_map_only(Value, lambda v: v.worlds[i], (args, kwargs))


def _call(target: Any, args: Any, kwargs: Any, copied: bool = False) -> Any:
    if copied:
        args, kwargs = _pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    result = getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)
    return args[0] if result is None else result


def _tensors(result: Any) -> list[Any]:
    return [result] if isinstance(result, torch.Tensor) else list(result)

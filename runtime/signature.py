"""Checks what a model is called with: names, element types, shapes; and finds the values of its symbolic dims."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError, dim_option
from xcc.runtime.dim_values import DimValues
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.program import Program, Require
from xcc.symbolic import Dim, bare_symbol

__all__ = ["Sizes", "TensorInfo", "check_names", "check_tensor", "from_python", "refusal", "require",
           "solve_symbols"]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model; a dim is an int, the name of a symbol, or the text of an expression of symbols.

    `values` names the symbols that the elements of an input are, where they are sizes of the model.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = f" = [{', '.join(self.values)}]" if self.shape else f" = {self.values[0]}" if self.values else ""
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]{values if self.values else ''}"


def tensor_infos(program: Program, indices: Sequence[int]) -> tuple[TensorInfo, ...]:
    buffers = [(i, program.buffers[i]) for i in indices]
    return tuple(TensorInfo(b.name, b.dtype, tuple(d if isinstance(d, int) else bare_symbol(d) or str(d)
                                                   for d in b.shape),
                            tuple(v.name for v in program.values if v.source == i)) for i, b in buffers)


def check_names(given: Any, inputs: Sequence[TensorInfo]) -> None:
    """UserError when `given` is no mapping of names, or a name is missing or unknown."""
    if not isinstance(given, Mapping):
        raise UserError(f"inputs come as a dict by name, not as a {type(given).__name__}")
    names = [i.name for i in inputs]
    listing = "; ".join(map(str, inputs)) or "none"
    for name in given:
        if name not in names:
            raise UserError(f"the model has no input '{name}'; its inputs are {listing}")
    missing = [n for n in names if n not in given]
    if missing:
        raise UserError(f"missing input {', '.join(repr(n) for n in missing)}; the model's inputs are {listing}")


def check_tensor(info: TensorInfo, dtype: str, shape: Sequence[int], *, given: bool = True) -> None:
    """UserError when the element type or the number of dims is not what `info` says: of an input, or of the memory
    that the caller has for an output."""
    what = f"input '{info.name}'" if given else f"out: '{info.name}'"
    wants = "takes" if given else "gives"
    if dtype != info.dtype:
        raise UserError(f"{what}: element type is {dtype}, the model {wants} {info}")
    if len(shape) != len(info.shape):
        raise UserError(f"{what}: shape is {_text(shape)}, the model {wants} {info}")


def from_python(info: TensorInfo, value: Any) -> np.ndarray[Any, Any]:
    """An array for the input `info` of a number or a nested list; UserError where it is neither, or has a float for an
    input of integers."""
    wanted = numpy_dtype(info.dtype)
    try:
        plain = np.asarray(value)
        if plain.dtype.kind not in "biuf" or plain.size and plain.dtype.kind == "f" and wanted.kind in "biu":
            raise ValueError
        array: np.ndarray[Any, Any] = np.asarray(value, dtype=wanted)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"input '{info.name}': cannot make an array of {info.dtype} "
                        f"from a {type(value).__name__}") from None
    return array


def solve_symbols(program: Program, shapes: Sequence[Sequence[int]], values: Sequence[int] = ()) -> dict[str, int]:
    """The value of each symbol, from the shapes of the inputs and the `values` that ``program.values`` lists.

    UserError where two dims disagree, or a value is out of its bounds.
    """
    env: dict[str, int] = {}
    source: dict[str, str] = {}
    for v, value in zip(program.values, values, strict=True):
        env[v.name] = int(value)
        b = program.buffers[v.source]
        source[v.name] = f"element {v.index} of input '{b.name}'" if b.shape else f"input '{b.name}'"
        if value < 0 and v.name not in program.bounds:
            raise UserError(f"{source[v.name]} is {value}, and is read as a size, which is not negative; to take "
                            f"negative ones, compile with bounds: {dim_option(v.name, f'{value}..N')}")
    buffers = [program.buffers[i] for i in program.inputs]
    for b, shape in zip(buffers, shapes, strict=True):
        for axis, (dim, size) in enumerate(zip(b.shape, shape, strict=True)):
            name = bare_symbol(dim)
            if name is not None and name not in env:
                env[name] = int(size)
                source[name] = f"dim {axis} of input '{b.name}'"
    for b, shape in zip(buffers, shapes, strict=True):
        for axis, (dim, size) in enumerate(zip(b.shape, shape, strict=True)):
            _check_dim(b.name, axis, dim, int(size), env, source, shape)
    for name, (low, high) in program.bounds.items():
        if name in env and not low <= env[name] <= high:
            raise UserError(f"{source[name]}: '{name}' is {env[name]}, the model was compiled for {low}..{high}")
    check_equal(program, env, source)
    return env


def check_equal(program: Program, env: Mapping[str, int], source: Mapping[str, str] | None = None) -> None:
    """UserError where sizes differ that the program takes to be the same. `env`: the symbols' values."""
    for left, right in program.equal:
        _check_equal(left, right, env, source or {})


class Sizes:
    """:func:`solve_symbols` of a program, quickly where the sizes fit."""

    def __init__(self, program: Program) -> None:
        self._program = program
        dims = [d for i in program.inputs for d in program.buffers[i].shape]
        self._bound: dict[str, int] = {}        # symbol -> which of the inputs' dims and values it is
        for n, v in enumerate(program.values, len(dims)):
            self._bound[v.name] = n
        for n, d in enumerate(dims):
            if (name := bare_symbol(d)) is not None:
                self._bound.setdefault(name, n)
        least = [(v.name, (0, inf)) for v in program.values if v.name not in program.bounds]
        self._bounds = [(self._bound[s], low, high) for s, (low, high) in (*program.bounds.items(), *least)
                        if s in self._bound]
        fixed = [(n, d) for n, d in enumerate(dims) if isinstance(d, int)]
        self._fixed = tuple([d for _, d in fixed])      # what those at the places must be
        self._computed = [n for n, d in enumerate(dims) if not isinstance(d, int) and self._place(d) is None]
        known = {pair: (self._place(pair[0]), self._place(pair[1])) for pair in program.equal}
        same: list[tuple[int | None, int | None]] = [(self._place(d), n) for n, d in enumerate(dims)]
        pairs = [(a, b) for a, b in (*same, *known.values()) if a is not None and b is not None and a != b]
        self._rest = DimValues((*(dims[n] for n in self._computed),
                                *chain(*(pair for pair, places in known.items() if None in places))))
        self._known = self._rest.symbols.keys() <= self._bound.keys()
        self._symbols_of, self._fixed_of = _at(self._bound.values()), _at(n for n, _ in fixed)
        self._left, self._right = _at(a for a, _ in pairs), _at(b for _, b in pairs)

    def _place(self, d: Dim) -> int | None:
        name = bare_symbol(d)
        return None if name is None else self._bound.get(name)

    def solve(self, shapes: Sequence[Sequence[int]], values: Sequence[int] = ()) -> dict[str, int]:
        """The value of each symbol; UserError where two dims disagree, or one is a division by zero."""
        given = (*chain(*shapes), *values)
        env = dict(zip(self._bound, self._symbols_of(given), strict=True))
        try:
            return env if self._fit(given, env) else solve_symbols(self._program, shapes, values)
        except ZeroDivisionError:
            sizes = ", ".join(f"'{name}' is {value}" for name, value in env.items())
            raise UserError(f"sizes do not fit: one that is computed is a division by zero, as {sizes}") from None

    def _fit(self, given: tuple[int, ...], env: dict[str, int]) -> bool:
        """Whether all is well, as far as it can be told quickly."""
        if self._fixed_of(given) != self._fixed or self._left(given) != self._right(given):
            return False
        for n, low, high in self._bounds:
            if not low <= given[n] <= high:
                return False
        if not self._known or not self._rest.results:
            return self._known
        values = self._rest(env)
        pairs = values[len(self._computed):]
        return values[:len(self._computed)] == [given[n] for n in self._computed] and pairs[::2] == pairs[1::2]


def _at(places: Iterable[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """What gives the elements at `places` of a tuple."""
    at = [*places]
    return operator.itemgetter(*at) if len(at) > 1 else operator.itemgetter(slice(at[0], at[0] + 1) if at else slice(0))


def _check_equal(a: Dim, b: Dim, env: Mapping[str, int], source: Mapping[str, str]) -> None:
    """UserError when `a` and `b`, which one op of the model takes to be the same size, differ."""
    left, right = symbolic.evaluate(a, env), symbolic.evaluate(b, env)
    if left == right:
        return
    raise UserError(_unequal(a, b, env, source))


def _unequal(a: Dim, b: Dim, env: Mapping[str, int], source: Mapping[str, str]) -> str:
    left, right = symbolic.evaluate(a, env), symbolic.evaluate(b, env)
    names = dict.fromkeys((*symbolic.symbols_of(a), *symbolic.symbols_of(b)))
    values = ", ".join(f"'{s}' is {env[s]}" + (f" (from {source[s]})" if s in source else "") for s in names)
    if b == symbolic.dim_max(a, 0):
        return f"too small: {a} = {left} would be a size, as {values}"
    if left < right and _is_max_of(a, b):
        return f"too small: {right} of {a} = {left} are read or written, as {values}"
    if b == symbolic.dim_min(a, right):
        return f"too large: {a} = {left} elements are counted, which goes up to {right}, as {values}"
    hint = "; to broadcast a size of 1, compile with that dim fixed to 1" if 1 in (left, right) else ""
    sides = [f"{d} = {n}" if isinstance(d, symbolic.Expr) else str(n) for d, n in ((a, left), (b, right))]
    return f"sizes do not fit: {' and '.join(sides)} must be equal, as {values}{hint}"


def _is_max_of(a: Dim, b: Dim) -> bool:
    """Whether `b` is the larger of `a` and something."""
    if not isinstance(b, symbolic.Expr) or len(b.terms) != 1:
        return False
    (atoms, factor), = b.terms
    return factor == 1 and len(atoms) == 1 and atoms[0][0] == "max" and a in atoms[0][1:]


def require(s: Require, env: Mapping[str, int]) -> None:
    """UserError when the sizes that `s` compares differ."""
    if symbolic.evaluate(s.left, env) != symbolic.evaluate(s.right, env):
        raise UserError(refusal(s, env))


def refusal(s: Require, env: Mapping[str, int]) -> str:
    """What to say of a run in which the sizes that `s` compares differ."""
    if isinstance(s.left, int) and isinstance(s.right, int):
        return s.message
    return f"{s.message}: {_unequal(s.left, s.right, env, {})}"


def _check_dim(name: str, axis: int, dim: Dim, size: int, env: Mapping[str, int], source: Mapping[str, str],
               shape: Sequence[int]) -> None:
    try:
        wanted = symbolic.evaluate(dim, env)
    except KeyError:
        return              # known only at run time
    if wanted == size:
        return
    where = f"input '{name}': shape is {_text(shape)}: dim {axis} is {size}"
    if isinstance(dim, int):
        raise UserError(f"{where}, the model takes {wanted}")
    values = ", ".join(f"'{s}' is {env[s]} (from {source[s]})" for s in symbolic.symbols_of(dim))
    raise UserError(f"{where}, but must be {dim} = {wanted}, as {values}")


def _text(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"

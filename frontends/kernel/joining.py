"""Which types variables have behind branches and from turn to turn of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from xcc.frontends.kernel.early_return import RESULT
from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, is_number
from xcc.frontends.kernel.types import TileType, number_type, promote

__all__ = ["Undefined", "Unreturned", "entered", "fitted", "joined", "kind_of", "settle"]


class Undefined:
    """What a variable holds that is not set, or that no one type fits. Its use is an error."""

    def __init__(self, name: str, why: str = "") -> None:
        self._name, self._why = name, why

    @property
    def explained(self) -> bool:
        """Whether it says why."""
        return bool(self._why)

    def set_by_a_loop(self) -> Undefined:
        """The same behind a loop that sets it."""
        return self if self._why else Undefined(self._name, "a loop sets it, which may have no turns: set it ahead of "
                                                            "the loop, too")

    def no_value(self) -> NoReturn:
        """Raises the error."""
        what = "what the function returns" if self._name.startswith(RESULT) else f"'{self._name}'"
        raise error(f"{what} is not set here{': ' if self._why else ''}{self._why}")

    def _use(self, *_others: object) -> NoReturn:
        self.no_value()

    def __getattr__(self, _name: str) -> NoReturn:
        self.no_value()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _use
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _use
    __and__ = __or__ = __getitem__ = __call__ = __iter__ = __bool__ = __index__ = _use


class Unreturned(Undefined):
    """What a function gives back that has not returned yet. Nobody looks at it, so that any value may stand for it."""


def kind_of(value: object) -> TileType | None:
    """The type of a tile or number; None for anything else."""
    return value.type if isinstance(value, Tile) else number_type(value) if isinstance(value, (bool, int, float)) else \
        as_tile(value).type if is_number(value) else None


def _met(a: TileType, b: TileType) -> TileType | None:
    """The type that a variable has which is an `a` here and a `b` there: one of the two, where a number may become the
    other."""
    if a == b:
        return a
    dtype = promote(a, b)
    if a.shape != b.shape or dtype is None or not (a.weak or b.weak):
        return None
    return TileType(dtype, a.shape, a.weak and b.weak)


def _same(a: object, b: object) -> bool:
    """Whether Python need not tell them apart."""
    return a is b or (type(a) is type(b) and not isinstance(a, Tile) and is_number(a) and a == b)


def joined(name: str, a: object, b: object) -> object:
    """What the variable `name` is behind a branch: a value, an Undefined, or the type of what the run decides."""
    if _same(a, b):
        return a
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return Undefined(name, "only one branch sets it")
    kinds = kind_of(a), kind_of(b)
    if kinds[0] is None or kinds[1] is None:
        return Undefined(name, f"it is a {type(a).__name__} in one branch and a {type(b).__name__} in the other, and "
                               "only the run knows which")
    met = _met(kinds[0], kinds[1])
    return met or Undefined(name, f"it is {kinds[0]} in one branch and {kinds[1]} in the other: make them alike, with "
                                  ".to() for the element type")


def settle(values: Sequence[object], names: Sequence[str], dry: Callable[[Sequence[object]], Sequence[object]],
           skip: int = 0) -> list[object]:
    """What each variable is at the begin of each turn: a value that stays, an Undefined, or the type of what changes.

    `dry` runs a turn for its types. The first `skip` variables are set by the loop itself.
    """
    state = list(values)
    for _ in range(2 * len(state) + 2):
        given = [Tile(s, None) if isinstance(s, TileType) else s for s in state]
        made = dry(given)
        new = [s if i < skip else _turned(names[i], s, given[i], made[i]) for i, s in enumerate(state)]
        if all(a is b or (isinstance(a, TileType) and a == b) for a, b in zip(state, new, strict=True)):
            break
        state = new
    return state


def _turned(name: str, state: object, given: object, made: object) -> object:
    if isinstance(state, Undefined):
        return state.set_by_a_loop() if not isinstance(made, Undefined) else state if state.explained else made
    if _same(given, made):
        return state
    if isinstance(made, Undefined):
        return made
    before, behind = state if isinstance(state, TileType) else kind_of(state), kind_of(made)
    if before is None or behind is None:
        what = type(made).__name__ if behind is None else behind
        return Undefined(name, f"a loop whose turns are counted when the kernel runs makes a {what} of a "
                               f"{type(given).__name__ if before is None else before}")
    met = _met(before, behind)
    if met is None or (not before.weak and met != before):
        return Undefined(name, f"it is {before} before the loop and {behind} at the end of a turn: begin with "
                               f"{behind}, or end with {before}")
    return state if isinstance(state, TileType) and met == state else met


def fitted(value: object, kind: TileType) -> Tile:
    """`value` as a tile of `kind`, which :func:`_met` found for it."""
    x = as_tile(value)
    if x.dtype != kind.dtype:
        x = Tile(kind, machine().op("convert", replace(kind, weak=False), x)) if x.constant is None else \
            Tile(kind, None, x.constant)
    return x


def entered(state: Sequence[object], carried: Mapping[int, TileType], data: Sequence[object]) -> list[object]:
    """The variables' values, where `data` is that of the carried ones."""
    values = list(state)
    for (i, kind), d in zip(carried.items(), data, strict=True):
        values[i] = Tile(kind, d)
    return values

"""The values of many symbolic dims at once, what they share computed once: the first run on inputs of a size waits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from itertools import repeat

from xcc.symbolic import NUMBERS, Dim, Expr

__all__ = ["DimValues"]

Step = tuple[Callable[[int, int], int], int, int]


class DimValues:
    """Called with the values of symbols, gives those of `dims`; KeyError with a symbol that has none. Several dims in
    a tuple stand for their product. `defined` has symbols that stand for dims over those before them.

    A place among the values is that of a step, or counted from the end that of a symbol or a number: `results` has
    those of the dims, `symbols` those of symbols, `steps` operations on places, `leaves` the numbers (0 for a symbol).
    """

    def __init__(self, dims: Iterable[Dim | tuple[Dim, ...]], defined: Iterable[tuple[str, Dim]] = ()) -> None:
        self._numbers: dict[int, int] = {}
        self._defined: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        self.steps: dict[Step, int] = {}
        for name, d in defined:
            self._defined[name] = self._place(d)
        self.results = [self._product(d) if isinstance(d, tuple) else self._place(d) for d in dims]
        self.leaves = [n for n, _ in sorted([*self._numbers.items(), *((0, at) for at in self.symbols.values())],
                                            key=operator.itemgetter(1))]

    def __call__(self, env: Mapping[str, int]) -> list[int]:
        values = [*repeat(0, len(self.steps)), *self.leaves]
        for name, at in self.symbols.items():
            values[at] = env[name]
        for n, (function, a, b) in enumerate(self.steps):
            values[n] = function(values[a], values[b])
        return [values[at] for at in self.results]

    def __len__(self) -> int:
        """How many operations a call takes."""
        return len(self.steps)

    def _product(self, dims: tuple[Dim, ...]) -> int:
        places = [self._place(d) for d in dims if d != 1]
        return reduce(partial(self._step, operator.mul), places) if places else self._place(1)

    def _place(self, d: Dim) -> int:
        """Where the value of `d` will be."""
        if not isinstance(d, Expr):
            return self._numbers.setdefault(d, self._next_leaf())
        total: int | None = None
        for monomial, factor in d.terms:
            value = None if monomial and factor == 1 else self._place(factor)
            for atom in monomial:
                if len(atom) == 1 and atom[0] in self._defined:
                    at = self._defined[atom[0]]
                elif len(atom) == 1:
                    at = self.symbols.setdefault(atom[0], self._next_leaf())
                else:
                    at = self._step(NUMBERS[atom[0]], self._place(atom[1]), self._place(atom[2]))
                value = at if value is None else self._step(operator.mul, value, at)
            assert value is not None
            total = value if total is None else self._step(operator.add, total, value)
        return self._place(0) if total is None else total

    def _step(self, function: Callable[[int, int], int], a: int, b: int) -> int:
        return self.steps.setdefault((function, a, b), len(self.steps))

    def _next_leaf(self) -> int:
        return -1 - len(self._numbers) - len(self.symbols)

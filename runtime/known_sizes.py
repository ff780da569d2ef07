"""The sizes in a program's statements that are known when a run begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from xcc import symbolic
from xcc.runtime.arena import walk
from xcc.runtime.dim_values import DimValues
from xcc.runtime.program import Collective, Copy, Launch, Program, SetScalar, Statement
from xcc.symbolic import Dim

__all__ = ["KnownSizes"]


class KnownSizes:
    """Called with the values of a program's symbols, gives one list for :meth:`of`, what sizes share computed once;
    an empty one where a size is a division by zero, which a branch may avoid."""

    def __init__(self, program: Program) -> None:
        self._program, self._symbols = program, set(program.symbols)
        self._places: dict[int, slice] = {}
        self._dims: list[Dim] = []
        for s in walk(program.body):
            dims = self._sizes(s)
            if dims and self._known(dims):
                self._places[id(s)] = slice(len(self._dims), len(self._dims) + len(dims))
                self._dims += dims
        self._aliases: list[tuple[int, int]] = []       # behind what they alias, and the places of their offsets
        fixed = {i for i, b in enumerate(program.buffers) if b.kind != "alias"}
        for i in sorted(set(range(len(program.buffers))) - fixed, key=partial(_depth, program)):
            b = program.buffers[i]
            if b.base in fixed and self._known((b.offset,)):
                fixed.add(i)
                self._aliases.append((i, len(self._dims)))
                self._dims.append(b.offset)
        self._values = DimValues(self._dims)

    def _sizes(self, s: Statement) -> tuple[Dim, ...]:
        if isinstance(s, Launch):
            return (*s.grid, *s.symbols)
        if isinstance(s, (Copy, Collective)):
            return (self._program.nbytes(s.source),)
        return s.values if isinstance(s, SetScalar) else ()

    def _known(self, dims: Sequence[Dim]) -> bool:
        return all(s in self._symbols for d in dims for s in symbolic.symbols_of(d))

    def __call__(self, env: Mapping[str, int]) -> list[int]:
        try:
            return self._values(env)
        except ZeroDivisionError:
            return []

    def of(self, statement: Statement, values: list[int]) -> list[int] | None:
        """The sizes in a launch (grid, then symbols), a copy or collective (bytes) or a setting (values); None where
        they are not all among `values`."""
        place = self._places.get(id(statement))
        return values[place] if place is not None and values else None

    def all_of(self, statement: Statement, values: list[int], env: Mapping[str, int]) -> list[int]:
        """The same sizes, those that are not among `values` for the symbols in `env`."""
        found = self.of(statement, values)
        return [symbolic.evaluate(d, env) for d in self._sizes(statement)] if found is None else found

    def offsets(self, values: list[int]) -> list[tuple[int, int]]:
        """Aliases, and where in its base each begins, in bytes; an alias of another comes behind it."""
        return [(i, values[place]) for i, place in self._aliases] if values else []


def _depth(program: Program, buffer: int) -> int:
    """How many aliases are between `buffer` and the memory it lies in."""
    b = program.buffers[buffer]
    return 1 + _depth(program, b.base) if b.kind == "alias" else 0

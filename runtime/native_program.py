"""What the native functions of a CPU model's host program know by number."""

from __future__ import annotations

from xcc.runtime.arena import walk
from xcc.runtime.program import BindSymbol, Collective, For, Program, Require

__all__ = ["collectives", "requirements", "symbol_names"]


def symbol_names(program: Program) -> tuple[str, ...]:
    """Every symbol of the program: those bound from inputs, then those bound while it runs."""
    names = list(program.symbols)
    for s in walk(program.body):
        if isinstance(s, BindSymbol):
            names.append(s.name)
        elif isinstance(s, For):
            names.append(s.counter)
    return tuple(dict.fromkeys(names))


def requirements(program: Program) -> list[Require]:
    """What ``xcc_main`` checks: the status it returns counts from 1 along this list."""
    return [s for s in walk(program.body) if isinstance(s, Require)]


def collectives(program: Program) -> list[Collective]:
    """What ``xcc_main`` has executed by the variable ``xcc_communicate``, a function of places in this list."""
    return [s for s in walk(program.body) if isinstance(s, Collective)]

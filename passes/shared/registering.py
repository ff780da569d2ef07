"""Tables of functions by the ops that they are for."""

from collections.abc import Callable, Sequence
from typing import TypeVar

F = TypeVar("F")


def registering(table: dict[str, F], names: Sequence[str], what: str) -> Callable[[F], F]:
    """A decorator that puts a function into `table` under `names`; a name that has one (`what`) is an error."""

    def register(function: F) -> F:
        for name in names:
            if name in table:
                raise ValueError(f"{name} has two {what}")
            table[name] = function
        return function

    return register

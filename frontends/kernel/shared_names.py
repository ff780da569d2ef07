"""Containers that a program holds by several names.

    a = b = [x, y]
    for i in range(n):
        a[0] = a[0] + 1         # error: `a` and `b` are one list

A branch or a turn that the run decides about works on copies of its variables' containers, one for each name. What it
changes in place by one name would not be seen by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.trees import containers, contents

__all__ = ["SharedNames"]


class SharedNames:
    """Of the variables `names` of `bodies`, the branches of a statement or the turn of a loop, that are `values`."""

    def __init__(self, values: Sequence[object], names: Sequence[str], *bodies: Callable[..., object]) -> None:
        self._names = [name for name, v in zip(names, values, strict=True) for _ in containers(v)]
        self._given = [c for v in values for c in containers(v)]
        self._read = [(name, c) for body in bodies for name, v in _read_by(body) for c in containers(v)]

    def watched(self, own: Sequence[object]) -> Callable[[Sequence[object]], None]:
        """To be called behind what is given `own`, with the variables that the next turn has, if there is one."""
        copies = [c for v in own for c in containers(v)]
        before = [contents(c) for c in copies]

        def check(behind: Sequence[object]) -> None:
            changed = [len(was) != len(now) or any(a is not b for a, b in zip(was, now, strict=True))
                       for was, now in zip(before, map(contents, copies), strict=True)]
            self._check(self._given, changed)
            after = [c for v in behind for c in containers(v)]
            if len(after) == len(changed):
                self._check(after, changed)

        return check

    def _check(self, held: Sequence[object], changed: Sequence[bool]) -> None:
        """None that is changed is `held` by another name."""
        every = [*zip(self._names, held, strict=True), *self._read]
        for i, changes in enumerate(changed):
            name, container = every[i]
            other = next((n for n, c in every if c is container and n != name), None)
            if changes and other is not None:
                raise error(f"`{name}` and `{other}` are one {type(container).__name__}, which changes in place where "
                            "only the run knows how often: make one of them a copy, or assign it anew")


def _read_by(body: Callable[..., object]) -> Iterator[tuple[str, object]]:
    """The variables of the program that `body` reads and does not change."""
    code, cells = getattr(body, "__code__", None), getattr(body, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars if code else (), cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:      # not assigned yet
            continue

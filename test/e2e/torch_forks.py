"""Units of samples that forks of this process work through: they have torch, the samples and the compiler imported."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from torch_report import Row

from xcc.process.fork_guard import end_with_parent

__all__ = ["DIED", "Unit", "worked"]

DIED = "the process died"


class Unit(NamedTuple):
    """The samples of an op and an element type that belong to `slice`, of `slices`."""

    op: str
    dtype: str
    slice: int = 0
    slices: int = 1


Work = Callable[[Unit, frozenset[int]], Iterator[Row]]
"""The rows of a unit, without those of the given numbers. A row that fails with DIED says what is begun now."""


def worked(units: Iterable[Unit], work: Work, jobs: int, end: float) -> Iterator[tuple[Unit, list[Row], bool]]:
    """Each unit with its rows, as they are done, and whether it has all of them: at `end`, a time of time.monotonic(),
    what is not done is left.

    A fork that dies fails the sample that it was at, and another one goes on with the unit.
    """
    ahead = iter(units)
    forks = [_Fork(work) for _ in range(jobs)]
    try:
        for fork in forks:
            fork.begin(next(ahead, None))
        while busy := {f.connection: f for f in forks if f.unit is not None}:
            ready = wait(list(busy), None if end == math.inf else max(0.0, end - time.monotonic()))
            for fork in (busy[c] for c in ready if isinstance(c, Connection)):
                unit = fork.unit
                if unit is not None and fork.is_done():
                    yield unit, list(fork.rows.values()), True
                    fork.begin(next(ahead, None))
            if time.monotonic() >= end:
                break
        for fork in forks:
            if fork.unit is not None:
                yield fork.unit, [r for r in fork.rows.values() if r.failure != DIED], False
    finally:
        for fork in forks:
            fork.process.kill()


class _Fork:
    """A fork and the unit that it is at, whose rows come one by one, by number."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.unit: Unit | None = None
        self.rows: dict[int, Row] = {}
        self._start()

    def _start(self) -> None:
        context = get_context("fork")
        self.connection, end = context.Pipe()
        self.process = context.Process(target=_serve, args=(end, self._work), daemon=True)
        self.process.start()
        end.close()

    def begin(self, unit: Unit | None) -> None:
        self.unit, self.rows = unit, {}
        if unit is not None:
            self.connection.send((unit, frozenset()))

    def is_done(self) -> bool:
        """Takes what the fork has said; whether that was the end of the unit."""
        try:
            row = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._start()
            if all(r.failure != DIED for r in self.rows.values()):      # between two samples: no use to try again
                self.rows[-1] = Row(-1, "", "", f"{DIED} where it made samples")
                return True
            self.rows |= {n: r._replace(failure=f"{DIED} meanwhile") for n, r in self.rows.items() if r.failure == DIED}
            self.connection.send((self.unit, frozenset(self.rows)))
            return False
        if row is not None:
            self.rows[row.number] = row
        return row is None


def _serve(connection: Any, work: Work) -> None:
    import os

    end_with_parent(os.getppid())
    while True:
        for row in work(*connection.recv()):
            connection.send(row)
        connection.send(None)

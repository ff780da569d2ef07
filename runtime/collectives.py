"""What collectives mean, in numpy: what a group's ranks have afterwards, by what they had before.

:class:`SimulatedRanks` runs the ranks of a mesh as threads of one process, so that a program of any number of ranks can
be tried anywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Collective

__all__ = ["COMBINE", "Communicate", "SimulatedRanks", "alone", "exchange"]

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")

COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


class Communicate(Protocol):
    """Executes a collective for one rank: reads `source`, writes `target`, arrays of the buffers' types."""

    def __call__(self, s: Collective, source: Array, target: Array, /) -> None: ...


def alone(s: Collective, source: Array, target: Array) -> None:
    """No communication: there are no other ranks."""
    raise UserError(f"{s.kind} over {', '.join(s.axes)}: the model is one of several ranks', and runs alone")


def exchange(s: Collective, sources: Sequence[Array]) -> list[Array]:
    """What the targets of a group hold, flat, by place, for these sources by place.

    Narrow floats are combined in f32, in the order of the places, and rounded once.
    """
    flat = [np.asarray(a).reshape(-1) for a in sources]
    ranks = len(flat)
    if s.kind == "all_reduce":
        return [_combined(s.combine, flat)] * ranks
    if s.kind == "reduce_scatter":
        return np.split(_combined(s.combine, flat), ranks)
    if s.kind == "all_gather":
        return [np.concatenate(flat)] * ranks
    if s.kind == "all_to_all":
        parts = [np.split(a, ranks) for a in flat]
        return [np.concatenate([p[place] for p in parts]) for place in range(ranks)]
    if s.kind == "broadcast":
        return [flat[s.root]] * ranks
    sender = {b: a for a, b in s.pairs}
    return [flat[sender[place]] if place in sender else np.zeros_like(flat[place]) for place in range(ranks)]


def _combined(combine: str, parts: Sequence[Array]) -> Array:
    dtype = parts[0].dtype
    wide = dtype if dtype.kind in "iub" or dtype.itemsize >= 4 else np.dtype(np.float32)
    out: Array = reduce(COMBINE[combine], [a.astype(wide) for a in parts]).astype(dtype)
    return out


@dataclass
class _Meeting:
    given: dict[int, tuple[Collective, Array]] = field(default_factory=dict)
    results: dict[int, Array] = field(default_factory=dict)


class SimulatedRanks:
    """Runs a function once for each rank of `mesh`, each in a thread.

    A rank that fails ends all; so do ranks that wait for one another, or that meet in different collectives.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self._lock = threading.Condition()
        self._meetings: dict[tuple[int, ...], _Meeting] = {}
        self._waiting: dict[int, Collective] = {}
        self._finished = 0
        self._failed: BaseException | None = None

    def run(self, function: Callable[[int, Communicate], Result]) -> list[Result]:
        """``function(rank, communicate)`` of all ranks, by rank; the first error of any of them is raised."""
        results: dict[int, Result] = {}

        def one(rank: int) -> None:
            try:
                results[rank] = function(rank, partial(self._meet, rank))
            except BaseException as e:          # whatever it is, it is raised in the caller's thread
                self._fail(e)
            with self._lock:
                self._finished += 1
                self._end_a_deadlock()

        threads = [threading.Thread(target=one, args=(rank,), name=f"rank {rank}") for rank in range(self.mesh.size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self._failed is not None:
            raise self._failed
        return [results[rank] for rank in range(self.mesh.size)]

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failed = self._failed or error
            self._lock.notify_all()

    def _meet(self, rank: int, s: Collective, source: Array, target: Array) -> None:
        """Waits for the others of the group; who comes last makes everybody's targets."""
        group = self.mesh.group(rank, s.axes)
        with self._lock:
            meeting = self._meetings.setdefault(group, _Meeting())
            meeting.given[rank] = s, np.array(source)
            if len(meeting.given) == len(group):
                self._complete(group, self._meetings.pop(group))
            else:
                self._waiting[rank] = s
                self._end_a_deadlock()
                self._lock.wait_for(lambda: bool(meeting.results) or self._failed is not None)
            if not meeting.results:
                raise UserError("another rank failed") from self._failed
        target.reshape(-1)[...] = meeting.results[rank]

    def _complete(self, group: tuple[int, ...], meeting: _Meeting) -> None:
        kinds = {(s.kind, s.axes, s.combine, s.pairs, s.root) for s, _ in meeting.given.values()}
        if len(kinds) > 1:
            raise UserError(f"ranks {group} meet in different collectives: {sorted(kinds)}")
        s, _ = meeting.given[group[0]]
        meeting.results = dict(zip(group, exchange(s, [meeting.given[r][1] for r in group]), strict=True))
        for rank in group:
            self._waiting.pop(rank, None)
        self._lock.notify_all()

    def _end_a_deadlock(self) -> None:
        if self._waiting and len(self._waiting) + self._finished == self.mesh.size and self._failed is None:
            waits = [f"{rank} in {s.kind} over {'+'.join(s.axes)}" for rank, s in sorted(self._waiting.items())]
            self._failed = UserError(f"ranks wait for others that do not come: {', '.join(waits)}")
            self._lock.notify_all()

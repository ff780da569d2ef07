"""What threads of a workgroup know of each other's accesses: clocks of its parts, which barriers advance.

A part is 128 threads, a warpgroup; in smaller workgroups it is all of them. An access at a part's clock t comes before
those of another part that has seen more than t of it (vector clocks). A workgroup barrier shows all to all. Of a named
barrier, who waits sees what those that came to it had done by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xcc.interpreter.async_reads import Reads

__all__ = ["PART", "Clocks"]

Array = np.ndarray[Any, Any]
PART = 128


@dataclass
class _Barrier:
    """A named barrier: how many threads came, what they had seen then, and which reads had been waited for."""

    threads: int = 0
    seen: Array | int = 0
    done: set[Reads] = field(default_factory=set)


class Clocks:
    """Those of `groups` workgroups of `threads` threads."""

    def __init__(self, groups: int, threads: int) -> None:
        self.parts = -(-threads // PART)
        self.own = np.zeros((groups, self.parts), np.int32)
        self.seen = np.zeros((groups, self.parts, self.parts), np.int32)
        self._named: dict[tuple[int, int], _Barrier] = {}       # by workgroup and number

    def barrier(self, some: Array) -> None:
        """A barrier of the workgroups whose flag is set."""
        now = self.own.max(axis=1)[some] + 1
        self.own[some], self.seen[some] = now[:, None], now[:, None, None]

    def come(self, group: int, number: int, part: int, threads: int, done: set[Reads]) -> None:
        """`threads` of a part come to the barrier `number` and do not wait there."""
        self.own[group, part] += 1
        barrier = self._named.setdefault((group, number), _Barrier())
        barrier.threads += threads
        seen = self.seen[group, part].copy()
        seen[part] = self.own[group, part]
        barrier.seen = np.maximum(barrier.seen, seen)
        barrier.done |= done

    def wait(self, group: int, number: int, parts: Array, threads: int) -> tuple[int, set[Reads]]:
        """`threads` of `parts` wait at the barrier: how many were there in all, and the reads that are known by that
        to have been waited for."""
        for part in parts:
            self.come(group, number, part, 0, set())
        barrier = self._named.pop((group, number))
        self.seen[group, parts] = np.maximum(self.seen[group, parts], barrier.seen)
        return barrier.threads + threads, barrier.done

"""What instructions that read shared memory on their own time (wgmma) may still be reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xcc.interpreter.memory import Buffer, any_of, pieces

__all__ = ["AsyncReads", "Reads"]

Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class Reads:
    """Bytes of shared memory (flags) that the instructions of one group read; -1: of the group that is open."""

    buffer: Buffer
    flags: Array
    group: int = -1
    waited: bool = False


@dataclass
class AsyncReads:
    """Reads until a wait for their group, and a barrier behind it, `closed` groups so far."""

    reads: list[Reads] = field(default_factory=list)
    closed: int = 0

    def add(self, buffer: Buffer, byte: Array, size: int) -> None:
        """The `size` bytes from each of `byte` are being read."""
        if not self.reads or self.reads[-1].group >= 0 or self.reads[-1].buffer is not buffer:
            self.reads.append(Reads(buffer, np.zeros(len(buffer.data), np.bool_)))
        flags, where, every = pieces(self.reads[-1].flags, byte, size)
        flags[where] = every

    def close(self) -> tuple[()]:
        """Closes the open group."""
        self.closed += 1
        for r in self.reads:
            if r.group < 0:
                r.group = self.closed
        return ()

    def wait(self, left: int) -> tuple[()]:
        """Waits for all closed groups but the last `left`."""
        for r in self.reads:
            r.waited = r.waited or 0 <= r.group <= self.closed - left
        return ()

    def barrier(self) -> None:
        """All threads know of the waits so far."""
        self.reads = [r for r in self.reads if not r.waited]

    def waited(self) -> set[Reads]:
        """Reads that were waited for."""
        return {r for r in self.reads if r.waited}

    def known(self, done: set[Reads]) -> None:
        """Of the reads `done` somebody knows who is to write there."""
        self.reads = [r for r in self.reads if r not in done]

    def overlap(self, buffer: Buffer, byte: Array, size: int) -> bool:
        """Whether some of the `size` bytes from each of `byte` may still be read."""
        return any(r.buffer is buffer and any_of(r.flags, byte, size) for r in self.reads)

"""Finds data races: two threads touch one place, one of them writes, and no barrier is between.

Each granule of memory remembers its last writer and its readers since, with the writer's and readers' barrier counts
at that time. An earlier access is ordered before a later one when the same thread made both, when both are of one
workgroup and barriers between them tell (xcc.interpreter.clocks), or when both are of one warp and a warp barrier lies
between. (The happens-before test of a dynamic race detector, with barriers as the only synchronisation.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Actors", "Tracker"]

Array = np.ndarray[Any, Any]
NOBODY, MANY = -1, -2


@dataclass
class Actors:
    """Who makes an access, one entry an access: thread, warp and workgroup numbers in the grid, barrier counts, the
    number of the part of the workgroup, and what that has `seen` of each part."""

    thread: Array
    warp: Array
    group: Array
    epoch: Array
    warp_epoch: Array
    part: Array
    seen: Array

    def take(self, index: Array) -> Actors:
        return Actors(self.thread[index], self.warp[index], self.group[index], self.epoch[index],
                      self.warp_epoch[index], self.part[index], self.seen[index])


class _Record:
    """The last access of one kind to every granule."""

    def __init__(self, granules: int) -> None:
        self.thread = np.full(granules, NOBODY, np.int32)
        self.warp = np.full(granules, NOBODY, np.int32)
        self.group = np.full(granules, NOBODY, np.int32)
        self.epoch = np.zeros(granules, np.int32)
        self.warp_epoch = np.zeros(granules, np.int32)
        self.part = np.zeros(granules, np.int32)

    def unordered(self, at: Array, who: Actors) -> Array:
        """Flags accesses that conflict with what is recorded at their granule."""
        thread = self.thread[at]
        ordered = (thread == who.thread) | (thread == NOBODY)
        if ordered.all():       # as mostly, and as the gathers of the other fields are what takes the time
            return ~ordered
        epoch = self.epoch[at]
        seen = who.seen[np.arange(len(at)), self.part[at]]
        ordered |= (self.group[at] == who.group) & (epoch < seen)
        if ordered.all():
            return ~ordered
        ordered |= (self.warp[at] == who.warp) & (epoch == who.epoch) & (self.warp_epoch[at] < who.warp_epoch)
        return ~ordered

    def put(self, at: Array, who: Actors) -> None:
        self.thread[at], self.warp[at], self.group[at] = who.thread, who.warp, who.group
        self.epoch[at], self.warp_epoch[at], self.part[at] = who.epoch, who.warp_epoch, who.part

    def clear(self, at: Array) -> None:
        self.thread[at] = self.warp[at] = self.group[at] = NOBODY


class Tracker:
    """The access history of one buffer, in granules of `granule` bytes."""

    def __init__(self, size: int, granule: int) -> None:
        self.granule = granule
        self._write, self._read = (_Record(-(-size // granule)) for _ in range(2))

    def order(self, group: int) -> None:
        """What all but workgroup `group` did so far comes before what follows."""
        for record in (self._write, self._read):
            record.clear(np.flatnonzero(record.group != group))

    def granules(self, byte: Array, width: int) -> tuple[Array, Array]:
        """Granules touched by accesses of `width` bytes at addresses `byte`, and which access each belongs to."""
        count = max(1, width // self.granule)
        at = (byte // self.granule)[:, None] + np.arange(count)
        return at.reshape(-1), np.repeat(np.arange(len(byte)), count)

    def read(self, byte: Array, width: int, who: Actors) -> int | None:
        """Records reads; the number of the first racing access, or None."""
        at, owner = self.granules(byte, width)
        who = who.take(owner) if len(at) > len(byte) else who
        bad = self._write.unordered(at, who)
        if bad.any():
            return int(owner[bad.argmax()])
        record = self._read
        # Readers ordered before this access are forgotten; the others merge into "many".
        keep = record.unordered(at, who)
        fields = (record.thread, record.warp, record.group)
        before = [field[at] for field in fields] if keep.any() else [None] * len(fields)
        record.put(at, who)
        for field, old, mine in zip(fields, before, (who.thread, who.warp, who.group), strict=True):
            many = field[at] != mine
            if old is not None:
                many |= keep & (old != mine)
            if many.any():
                field[at[many]] = MANY
        return None

    def write(self, byte: Array, width: int, who: Actors, values: Array) -> int | None:
        """Records writes; the number of the first racing access, or None. Equal values written at once do not race.

        values: (accesses, bytes) as stored.
        """
        at, owner = self.granules(byte, width)
        who = who.take(owner) if len(at) > len(byte) else who
        bad = self._write.unordered(at, who) | self._read.unordered(at, who)
        if bad.any():
            return int(owner[bad.argmax()])
        self._write.put(at, who)
        lost = self._write.thread[at] != who.thread
        if lost.any():
            parts = values.reshape(len(at), -1)
            first = np.full(int(at.max()) + 1, -1, np.int64)
            first[at] = np.arange(len(at))
            different = (parts != parts[first[at]]).any(axis=1)
            if different.any():
                return int(owner[different.argmax()])
            self._write.thread[at[lost]] = MANY
        self._read.clear(at)
        return None

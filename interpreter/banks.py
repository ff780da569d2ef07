"""Bank conflicts of shared memory: how many cycles a warp's access takes against how few it could."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["bank_cycles"]

Array = np.ndarray[Any, Any]
WORD = 4


def bank_cycles(byte: Array, size: int, warp: Array, lane: Array, banks: int, groups: int = 1
                ) -> tuple[int, int, int]:
    """(warp accesses, cycles, least cycles possible) of lanes that access `size` bytes at `byte` each.

    An access of more than 4 bytes a lane is split into phases of as many lanes as fill all banks once; in a phase each
    bank serves one word a cycle and a word that several lanes want is fetched once. Of `groups` workgroups one is
    looked at where all do the same, as they mostly do.
    """
    if groups > 1 and len(byte) % groups == 0:
        bytes_, warps, lanes = (a.reshape(groups, -1) for a in (byte, warp, lane))
        apart = (warps.min(axis=1)[1:] > warps.max(axis=1)[:-1]).all()
        if apart and all((a == a[0]).all() for a in (bytes_, lanes, warps - warps[:, :1])):
            accesses, cycles, least = bank_cycles(bytes_[0], size, warps[0], lanes[0], banks)
            return groups * accesses, groups * cycles, groups * least
    start = byte.min() // (banks * WORD) * (banks * WORD)      # a loop's steps differ by whole rows of banks
    return _cycles((byte - start).tobytes(), size, (warp - warp.min()).tobytes(), lane.tobytes(), banks)


@lru_cache(maxsize=256)
def _cycles(bytes_: bytes, size: int, warps: bytes, lanes: bytes, banks: int) -> tuple[int, int, int]:
    """`bank_cycles` of arrays of 64-bit integers, given as bytes."""
    byte, warp, lane = (np.frombuffer(a, np.int64) for a in (bytes_, warps, lanes))
    words = max(1, size // WORD)
    lanes_per_phase = max(1, banks // words)
    phase = lane // lanes_per_phase
    row = _numbered(warp * 64 + phase)
    word = ((byte // WORD)[:, None] + np.arange(words)).reshape(-1)
    distinct = np.sort(np.repeat(row, words) * (1 << 32) + word)
    distinct = distinct[_first(distinct)]
    row, word = distinct >> 32, distinct & ((1 << 32) - 1)
    rows = int(row.max()) + 1
    load = np.bincount(row * banks + word % banks, minlength=rows * banks).reshape(rows, banks)
    needed = load.sum(axis=1)
    return int(_numbered(warp).max()) + 1, int(load.max(axis=1).sum()), int((-(-needed // banks)).sum())


def _first(ordered: Array) -> Array:
    """Flags each element of a sorted array that is unlike the one before."""
    return np.append(True, ordered[1:] != ordered[:-1])


def _numbered(values: Array) -> Array:
    """Each element's number among the distinct ones. They are sorted, as threads are, but for odd orders of lanes."""
    if (values[1:] >= values[:-1]).all():
        return np.cumsum(_first(values)) - 1
    return np.unique(values, return_inverse=True)[1].reshape(-1)

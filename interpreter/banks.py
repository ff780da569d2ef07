"""Bank conflicts of shared memory: how many cycles a warp's access takes against how few it could."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bank_cycles"]

Array = np.ndarray[Any, Any]
WORD = 4


def bank_cycles(byte: Array, size: int, warp: Array, lane: Array, banks: int) -> tuple[int, int, int]:
    """(warp accesses, cycles, least cycles possible) of lanes that access `size` bytes at `byte` each.

    An access of more than 4 bytes a lane is split into phases of as many lanes as fill all banks once; in a phase each
    bank serves one word a cycle and a word that several lanes want is fetched once.
    """
    words = max(1, size // WORD)
    lanes_per_phase = max(1, banks // words)
    phase = lane // lanes_per_phase
    _, row = np.unique(warp.astype(np.int64) * 64 + phase, return_inverse=True)
    word = ((byte // WORD)[:, None] + np.arange(words)).reshape(-1)
    row = np.repeat(row.reshape(-1), words)
    distinct = np.unique(row * (1 << 32) + word)
    row, word = distinct >> 32, distinct & ((1 << 32) - 1)
    rows = int(row.max()) + 1
    load = np.bincount(row * banks + word % banks, minlength=rows * banks).reshape(rows, banks)
    needed = load.sum(axis=1)
    return len(np.unique(warp)), int(load.max(axis=1).sum()), int((-(-needed // banks)).sum())

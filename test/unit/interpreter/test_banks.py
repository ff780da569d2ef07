"""Bank conflicts as counted at once for all warps, against counting them one after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from xcc.interpreter.banks import bank_cycles


def counted(byte: Any, size: int, warp: Any, lane: Any, banks: int) -> tuple[int, int, int]:
    """By words: a set of them for each warp and phase."""
    words = max(1, size // 4)
    phases = defaultdict(set)
    for b, w, n in zip(byte, warp, lane, strict=True):
        phases[w, n // max(1, banks // words)].update(range(b // 4, b // 4 + words))
    loads = [Counter(word % banks for word in phase) for phase in phases.values()]
    return len(set(warp)), sum(max(load.values()) for load in loads), \
        sum(-(-load.total() // banks) for load in loads)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("banks", [32, 64])
def test_any_threads_and_places(size: int, banks: int) -> None:
    rng = np.random.default_rng(size + banks)
    for threads in (rng.choice(256, 100, replace=False), np.arange(256), np.arange(3)):
        for order in (np.sort(threads), rng.permutation(threads)):
            byte = rng.integers(0, 4096 // size, len(order)) * size
            args = byte, size, order // 32, order % 32, banks
            assert bank_cycles(*args) == counted(*args)


@pytest.mark.parametrize("alike", [True, False])
def test_groups_that_do_the_same(alike: bool) -> None:
    own = np.random.default_rng(1).integers(0, 512, 64) * 4
    byte = np.concatenate([own if alike else np.zeros_like(own), *[own] * 4])
    thread = np.tile(np.arange(64), 5)
    args = byte, 4, np.repeat(np.arange(5), 64) * 2 + thread // 32, thread % 32, 32
    assert bank_cycles(*args, groups=5) == counted(*args)

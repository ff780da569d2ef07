"""`break` and `return` in loops, where the run knows whether they are reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcc


@xcc.kernel
def stops(x, y):
    """Two loops of the program, with an else each; what is behind the break is not done."""
    best, at = xcc.zeros(4), -1
    for i in range(x.shape[0]):
        t = x.tile(i, 4, other=9)
        if t.min() > 5:
            at = i
            break
        best = xcc.maximum(best, t)
    else:
        at = 100
    while at > 40:
        at -= 7
        if at == 58 or at == 44:
            break
    else:
        y.store(7, 1.0)
    y.store(0, best)
    y.store(4, at)


def searched(x, value):
    """Whether it is in a sorted array, and where it is or would be."""
    low, high = 0, x.shape[0]
    while True:
        if low >= high:
            return low, False
        middle = (low + high) // 2
        found = x.gather(middle)
        if found == value:
            return middle, True
        if found < value:
            low = middle + 1
        else:
            high = middle


@xcc.kernel
def searches(x, y):
    for i in range(4):
        at, there = searched(x, i + 1.5)
        y.store(i, xcc.where(there, 100, at))
        y.store(4 + i, searched(x, i + 1.0)[0])


@xcc.kernel
def nested(x, y):
    """A return out of two loops, and a `break`, a `continue` beside it."""
    total, n = 0.0, x.shape[0]
    for i in range(n):
        for j in range(i, n):
            t = x.gather(j)
            if t * 10 + i == 22:
                y.store(0, total)
                return
            if t == 3:
                break
            if t == 0:
                continue
            total += t + 10 * i
        total += 0.5
    y.store(1, total)


def first_above(tiles, limit):
    for t in tiles:
        if t.max() > limit:
            return t
    return xcc.zeros(2)


@xcc.kernel
def of_lists(x, y):
    """Loops of Python's, whose other turns are a branch."""
    tiles = [x.tile(i, 2, other=i) for i in range(3)]
    y.store(0, first_above(tiles, 2))
    total, turns = xcc.zeros(2), 0
    for t in tiles:
        turns += 1
        if t.sum() == 5:
            break
        total += t
    y.store(2, total * turns)


@xcc.kernel
def decided_later(x, y):
    """A condition that only the first turn knows without the run, and one that a break leaves unasked."""
    state, turns = 0, 0
    while state != 2:
        state = x.gather(turns, other=2.0).to(xcc.i32)
        turns += 1
    y.store(0, turns)
    lock = 0.0
    while y.atomic_add(5, 1) < 6:
        lock += 1
        if lock == x.shape[0]:
            break
    y.store(1, lock)


KERNELS = (stops, searches, nested, of_lists, decided_later)


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_as_python_does(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for x in (np.arange(1, 6) % 4, np.arange(1, 8), np.array([7, 6, 9, 9, 9, 8, 9]), np.array([1, 1]), np.zeros(0)):
        found = []
        for mode in ("eager", "check", ""):
            monkeypatch.setenv("XCC_KERNEL", mode)
            y = np.full(8, 1.25, np.float32)
            kernel[1](x.astype(np.float32), y)
            found.append(y)
        np.testing.assert_array_equal(found[1], found[0])
        np.testing.assert_array_equal(found[2], found[0])
        assert (found[0] != 1.25).any()


@pytest.mark.parametrize("stop", [False, True])
def test_a_break_that_is_known_is_no_exit(stop: bool) -> None:
    """A loop that nothing leaves is counted, so that its loads run ahead."""
    def k(x, y, STOP: xcc.constexpr):
        total = xcc.zeros(8)
        for i in range(0, x.shape[0], 8):
            total += x.tile(i, 8, other=0)
            if STOP:
                break
        y.store(0, total)

    made = xcc.kernel(types={"x": "f32[n]", "y": "f32[8]"}, grid=lambda a: 1)(k)
    x, y = np.arange(20, dtype=np.float32), np.zeros(8, np.float32)
    made(x, y, STOP=stop)
    assert ("scf.while" in made.stages()["program"]) == stop
    np.testing.assert_array_equal(y, x[:8] if stop else np.pad(x, (0, 4)).reshape(3, 8).sum(0))

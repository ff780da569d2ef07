"""Forks that work through units: whatever dies or takes too long, the others' rows come."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator

from torch_forks import DIED, Unit, worked
from torch_report import Row


def rows(unit: Unit, done: frozenset[int]) -> Iterator[Row]:
    """Three samples; the second of `dies` kills its process, that of `hangs` takes for ever."""
    for number in range(3):
        if number in done:
            continue
        yield Row(number, "", "", DIED)
        if number == 1 and unit.op == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 1 and unit.op == "hangs":
            time.sleep(3600)
        yield Row(number, "", "", "")


def test_a_process_that_dies_fails_its_sample() -> None:
    units = [Unit(op, "f32") for op in ("first", "dies", "last")]
    found = {unit.op: rows for unit, rows, whole in worked(units, rows, 2, math.inf) if whole}
    assert {op: [r.failure for r in rows] for op, rows in found.items()} == {
        "first": ["", "", ""], "dies": ["", f"{DIED} meanwhile", ""], "last": ["", "", ""]}


def test_the_time_ends() -> None:
    units = [Unit("hangs", "f32"), Unit("hangs", "f16"), Unit("never", "f32")]
    found = {unit: (rows, whole) for unit, rows, whole in worked(units, rows, 2, time.monotonic() + 0.5)}
    assert set(found) == set(units[:2])
    assert all(not whole and [r.number for r in rows] in ([], [0]) for rows, whole in found.values())

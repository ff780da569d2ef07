"""Runs of a small model on zeros when it is loaded: behind them its code is in the first caches, and branch predictors
and address translations know it, which takes a first run of 20 us as long again.

Kernels are safe on any data: indices are clamped, divisors checked. A model with loops may never end on zeros, and a
large one takes long and gains little: neither is run.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.arena import walk
from xcc.runtime.program import For, If, Program, While

__all__ = ["MOST_BYTES", "Rehearsal"]

MOST_BYTES = 4 << 20        # of weights, and of what a run reads and writes
RUNS, SECONDS = 12, 1e-3    # most runs of a way through the program, and when the last may begin
WAYS = 8                    # most branches that are taken the other way


class Rehearsal:
    """Of `program`, whose code is `library`, with `weights` bytes of weights."""

    def __init__(self, program: Program, library: ctypes.CDLL, weights: int) -> None:
        statements = list(walk(program.body))
        self.possible = weights <= MOST_BYTES and not any(isinstance(s, (While, For)) for s in statements)
        self._branches = min(WAYS, sum(isinstance(s, If) for s in statements))
        try:
            self._flips = ctypes.c_int64.in_dll(library, "xcc_flips")
        except ValueError:          # no branches, or of an xcc that did not know this
            self._branches = 0

    def __call__(self, run: Callable[[], Any], size: int) -> bool:
        """Calls `run`, which reads and writes `size` bytes, several times, as its data say and with each branch taken
        the other way, if that is little; False where none of these ways comes to its end."""
        if not self.possible or size > MOST_BYTES:
            return True
        ways = [way for way in (0, *(1 << n for n in range(self._branches))) if self._repeat(way, run)]
        for way in ways[1:] and reversed(ways):     # the last is what the data say, or else the first that fits
            self._repeat(way, run)
        return bool(ways)

    def _repeat(self, way: int, run: Callable[[], Any]) -> bool:
        """Whether runs with the branches in `way` flipped come to their end."""
        if not self._branches:
            return _repeat(run)
        self._flips.value = way
        try:
            return _repeat(run)
        finally:
            self._flips.value = 0


def _repeat(run: Callable[[], Any]) -> bool:
    end = time.perf_counter() + SECONDS
    try:
        for _ in range(RUNS):
            run()
            if time.perf_counter() > end:
                break
    except UserError:               # these sizes do not fit this way
        return False
    return True

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

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.arena import touched, walk
from xcc.runtime.program import For, If, Program, Statement, While

__all__ = ["MOST_BYTES", "Rehearsal"]

MOST_BYTES = 4 << 20        # of weights, and of what a run reads and writes
RUNS, SECONDS = 12, 1e-3    # most runs of a way through the program, and when the last may begin
WAYS = 8                    # most branches that are taken the other way


class Rehearsal:
    """Of `program`, whose code is `library`, with `weights` bytes of weights."""

    def __init__(self, program: Program, library: ctypes.CDLL, weights: int) -> None:
        statements = list(walk(program.body))
        self.possible = weights <= MOST_BYTES and not any(isinstance(s, (While, For)) for s in statements)
        self._heavier = [_heavier(program, s) for s in statements if isinstance(s, If)][:WAYS]
        try:
            self._flips = ctypes.c_int64.in_dll(library, "xcc_flips")
            self._taken = ctypes.c_int64.in_dll(library, "xcc_taken")
        except ValueError:          # no branches, or of an xcc that did not know these
            self._heavier = []

    def __call__(self, run: Callable[[], Any], size: int) -> bool:
        """Calls `run`, which reads and writes `size` bytes, several times, as its data say and with each branch taken
        the other way, if that is little; False where none of these ways comes to its end.

        The last way is the one with most weights, which has most to lose from caches, or else the first that fits.
        """
        if not self.possible or size > MOST_BYTES:
            return True
        ways = [way for way in (0, *(1 << n for n in range(len(self._heavier)))) if self._repeat(way, run)]
        heaviest = self._heaviest(run)
        if heaviest in ways or heaviest and self._repeat(heaviest, run):
            ways = [heaviest, *(way for way in ways if way != heaviest)]
        for way in ways[1:] and reversed(ways):
            self._repeat(way, run)
        return bool(ways)

    def _heaviest(self, run: Callable[[], Any]) -> int:
        """The way on which each branch that is come to reads the most weights it can; some way where none fits."""
        wanted = sum(1 << n for n, then in enumerate(self._heavier) if then)
        way = 0
        for n in (n for n, then in enumerate(self._heavier) if then is not None):
            self._taken.value = wanted      # and stays, where the branch is not come to
            self._repeat(way, run, 1)
            way |= (self._taken.value ^ wanted) & 1 << n
        return way

    def _repeat(self, way: int, run: Callable[[], Any], runs: int = RUNS) -> bool:
        """Whether runs with the branches in `way` flipped come to their end."""
        if not self._heavier:
            return _repeat(run, runs)
        self._flips.value = way
        try:
            return _repeat(run, runs)
        finally:
            self._flips.value = 0


def _heavier(program: Program, s: If) -> bool | None:
    """Whether what `s` runs where its condition holds has more weights than what it runs else; None for as many."""
    then, orelse = _weights(program, s.then), _weights(program, s.orelse)
    return None if then == orelse else then > orelse


def _weights(program: Program, body: tuple[Statement, ...]) -> int:
    """Bytes of the weights that `body` reads."""
    buffers = {program.root(b) for s in walk(body) for b in touched(s)}
    return sum(symbolic.evaluate(program.nbytes(b), {}) for b in buffers
               if program.buffers[b].kind in ("weight", "kept"))


def _repeat(run: Callable[[], Any], runs: int) -> bool:
    end = time.perf_counter() + SECONDS
    try:
        for _ in range(runs):
            run()
            if time.perf_counter() > end:
                break
    except UserError:               # these sizes do not fit this way
        return False
    return True

"""Brings what a run will read into the caches of its threads, when a model is loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from xcc import symbolic
from xcc.runtime.arena import touched, walk
from xcc.runtime.library import Place
from xcc.runtime.program import Program

__all__ = ["MOST_FETCHED", "data_places", "fetch"]

MOST_FETCHED = 16 << 20     # bytes of weights: more are not in the caches of most machines in a warm run either


def data_places(program: Program, pointers: Sequence[int | None]) -> list[Place]:
    """The weights that a run reads, and what was made of weights for it; `pointers` has one a buffer."""
    read = {program.root(b) for s in walk(program.body) for b in touched(s)}
    return [(pointers[b] or 0, symbolic.evaluate(program.nbytes(b), {})) for b in read
            if program.buffers[b].kind in ("weight", "kept")]


def fetch(library: ctypes.CDLL, code: Sequence[Place], data: Sequence[Place]) -> None:
    """Has every thread read `code`, and `data` where it is small; leaves the threads awake for a moment."""
    if not hasattr(library, "xcc_fetch"):
        return                  # of a model that was compiled before there was one
    places = [*(data if sum(n for _, n in data) <= MOST_FETCHED else ()), *code]
    library.xcc_fetch((ctypes.c_int64 * (2 * len(places)))(*(v for place in places for v in place)),
                      ctypes.c_int64(len(places)))

"""Plans of runs on new sizes, made by ``xcc_plan`` of the model's library (xcc.targets.cpu.plan): as
xcc.runtime.arena does, a hundred times as fast."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc.runtime.arena import ArenaPlanner
from xcc.symbolic import Dim

__all__ = ["NativePlanner", "native_planner"]


def native_planner(library: ctypes.CDLL, planner: ArenaPlanner, dims: Sequence[Dim],
                   addresses: Any) -> NativePlanner | None:
    """A planner of the temporary buffers of `planner`, and of `dims` of outputs; None for a library without one.
    `addresses` has one a buffer of the program."""
    if not hasattr(library, "xcc_plan"):
        return None
    return NativePlanner(library.xcc_plan, len(planner.temps), len(dims), addresses)


class NativePlanner:
    """Called with the array of the symbols' values, gives bytes of the arena, and writes the addresses of the buffers
    for an arena at `move_to`'s place; -1 where Python is to plan, as sizes are too large or a division by zero. `dims`
    has the values of the dims then, `begins` where in the arena the buffers are, in order."""

    def __init__(self, function: Any, buffers: int, dims: int, addresses: Any) -> None:
        work = np.zeros((4, buffers), np.int64)     # begins, ends, sizes, the buffers by size
        work[3] = np.arange(buffers)
        self.begins, self.dims = work[0], (ctypes.c_int64 * dims)()
        function.restype = ctypes.c_int64
        self._function, self._arena = function, ctypes.c_int64(0)
        self._rest = ctypes.c_void_p(work.ctypes.data), self.dims, addresses

    def __call__(self, symbols: Any) -> int:
        size: int = self._function(symbols, self._arena, *self._rest)
        return size

    def move_to(self, address: int) -> None:
        """The arena is at `address` from now on."""
        self._arena.value = address

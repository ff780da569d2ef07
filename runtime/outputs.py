"""Memory for outputs: what the caller let go of serves the next run.

A fresh array of megabytes costs a page fault and a cleared page for every 4 KiB, often more than the kernel that fills
it. Reference counts tell when the last view of an output (an array, a DLPack capsule, a memoryview) is gone.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from xcc.runtime.arena import ALIGNMENT

__all__ = ["OutputMemory"]

LARGE = 1 << 17     # bytes; smaller arrays come from the allocator's own lists
KEPT = 2            # buffers of one output: a caller may hold the result of the run before
_UNUSED = 2         # references to a buffer that only the list holds, as seen from inside getrefcount


class OutputMemory:
    """Hands out arrays for one output of a model."""

    def __init__(self) -> None:
        self._buffers: list[np.ndarray[Any, Any]] = []
        self._begins: list[int] = []        # where in each buffer a cache line begins

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """An uninitialised array of `shape`, in memory that no other array uses.

        Large ones begin with a cache line, so that stores of whole vectors stay within a line each.
        """
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        for n in range(len(self._buffers)):
            if sys.getrefcount(self._buffers[n]) == _UNUSED and self._buffers[n].size == size + ALIGNMENT:
                return np.ndarray(shape, dtype, self._buffers[n], self._begins[n])
        if len(self._buffers) == KEPT:
            del self._buffers[0], self._begins[0]
        buffer = np.empty(size + ALIGNMENT, np.uint8)
        self._buffers.append(buffer)
        self._begins.append(-buffer.ctypes.data % ALIGNMENT)
        return np.ndarray(shape, dtype, buffer, self._begins[-1])

"""Memory for outputs: what the caller let go of serves the next run.

A fresh array of megabytes costs a page fault and a cleared page for every 4 KiB, often more than the kernel that fills
it. Reference counts tell when the last view of an output (an array, a DLPack capsule, a memoryview) is gone.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

__all__ = ["OutputMemory"]

LARGE = 1 << 17     # bytes; smaller arrays come from the allocator's own lists
KEPT = 2            # buffers of one output: a caller may hold the result of the run before
_UNUSED = 2         # references to a buffer that only the list holds, as seen from inside getrefcount


class OutputMemory:
    """Hands out arrays for one output of a model."""

    def __init__(self) -> None:
        self._buffers: list[np.ndarray[Any, Any]] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """An uninitialised array of `shape`, in memory that no other array uses."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        for n in range(len(self._buffers)):
            if sys.getrefcount(self._buffers[n]) == _UNUSED and self._buffers[n].size == size:
                return self._buffers[n].view(dtype).reshape(shape)
        if len(self._buffers) == KEPT:
            del self._buffers[0]
        self._buffers.append(np.empty(size, np.uint8))
        return self._buffers[-1].view(dtype).reshape(shape)

"""Memory for outputs: what the caller let go of serves the next run.

A fresh array of megabytes costs a page fault and a cleared page for every 4 KiB, often more than the kernel that fills
it. Reference counts tell when the last view of an output (an array, a DLPack capsule, a memoryview) is gone.
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any

import numpy as np

from xcc.runtime.arena import ALIGNMENT

__all__ = ["OutputMemory", "address_of"]

LARGE = 1 << 17     # bytes; smaller arrays come from the allocator's own lists
KEPT = 2            # buffers of one output: a caller may hold the result of the run before
_UNUSED = 2         # references to a buffer that only the list holds, as seen from inside getrefcount


class OutputMemory:
    """Hands out arrays for one output of a model."""

    def __init__(self) -> None:
        self._buffers: list[np.ndarray[Any, Any]] = []
        self._begins: list[tuple[int, int]] = []    # where in each buffer a cache line begins, and its address

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], int]:
        """An uninitialised array of `shape`, in memory that no other array uses, and its address.

        Large ones begin with a cache line, so that stores of whole vectors stay within a line each.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < LARGE:
            array = np.empty(shape, dtype)
            return array, address_of(array)
        for n in range(len(self._buffers)):
            if sys.getrefcount(self._buffers[n]) == _UNUSED and self._buffers[n].size == size + ALIGNMENT:
                begin, address = self._begins[n]
                return np.ndarray(shape, dtype, self._buffers[n], begin), address
        if len(self._buffers) == KEPT:
            del self._buffers[0], self._begins[0]
        buffer = np.empty(size + ALIGNMENT, np.uint8)
        address = -(-address_of(buffer) // ALIGNMENT) * ALIGNMENT
        self._buffers.append(buffer)
        self._begins.append((address - address_of(buffer), address))
        return np.ndarray(shape, dtype, buffer, self._begins[-1][0]), address


def address_of(array: Any) -> int:
    """Of an array's first element. `array.ctypes.data` takes several times as long, as long as a small kernel."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):    # read-only, empty, or of a type that buffers do not know
        return int(array.ctypes.data)

"""Memory for outputs: what the caller let go of serves the next run.

A fresh array of megabytes costs page faults and cleared pages, often more than the kernel that fills it. Reference
counts tell when the last view of an output (an array, a DLPack capsule, a memoryview) is gone.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.large_pages import OWN, address_of, reserve
from xcc.symbolic import Dim

__all__ = ["FinalShape", "OutputMemory", "cut"]

Values = Sequence[int] | ctypes.Array[ctypes.c_int64]
KEPT = 2            # buffers of one output: a caller may hold the result of the run before
_UNUSED = 2         # references to a buffer that only the list holds, as seen from inside getrefcount


class OutputMemory:
    """Hands out arrays for one output of a model."""

    def __init__(self) -> None:
        self._buffers: list[np.ndarray[Any, Any]] = []
        self._places: list[tuple[int, int, int]] = []   # of each buffer: bytes for arrays, where they begin, address

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], int]:
        """An uninitialised array of `shape`, in memory that no other array uses, and its address.

        Large ones begin with a cache line, so that stores of whole vectors stay within a line each.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < OWN:
            array = np.empty(shape, dtype)
            return array, address_of(array)
        for n in range(len(self._buffers)):
            if sys.getrefcount(self._buffers[n]) == _UNUSED and self._places[n][0] == size:
                _, begin, address = self._places[n]
                return np.ndarray(shape, dtype, self._buffers[n], begin), address
        return self._new(shape, dtype, size)

    def make_ready(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """The next :meth:`empty` of this shape gives memory that the system has cleared."""
        size = math.prod(shape) * dtype.itemsize
        if size >= OWN:
            self._new(shape, dtype, size)[0].fill(0)

    def _new(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> tuple[np.ndarray[Any, Any], int]:
        if len(self._buffers) == KEPT:
            del self._buffers[0], self._places[0]
        buffer, begin = reserve(size, exact=True)       # the caller may hold many
        self._buffers.append(buffer)
        self._places.append((size, begin, address_of(buffer) + begin))
        return np.ndarray(shape, dtype, buffer, begin), self._places[-1][2]


class FinalShape:
    """The shape of an output after a run, of the values that the run has left of the symbols `names`."""

    def __init__(self, dims: Sequence[Dim], names: Sequence[str]) -> None:
        self._names = names
        self._dims = [(d, names.index(s) if (s := symbolic.bare_symbol(d)) is not None else -1) for d in dims]

    def __call__(self, values: Values) -> tuple[int, ...]:
        return tuple([values[k] if k >= 0 else d if isinstance(d, int) else self._computed(d, values)
                      for d, k in self._dims])

    def _computed(self, d: Dim, values: Values) -> int:
        return symbolic.evaluate(d, {name: int(values[k]) for k, name in enumerate(self._names)})


def cut(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The first elements of a contiguous `array` as one of `shape`."""
    if array.shape[1:] == shape[1:]:
        return array[:shape[0]] if shape else array
    return array.reshape(-1)[:math.prod(shape)].reshape(shape)

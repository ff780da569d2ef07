"""Outputs of runs on a GPU: memory for them, and their numbers where the caller wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.device_array import DeviceArray
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.placed_shape import PlacedShape
from xcc.runtime.program import DTYPE_BYTES, Program

__all__ = ["GpuResults", "nbytes_of"]


def nbytes_of(array: Any) -> int:
    """Of a contiguous array, anybody's."""
    return int(prod(array.shape)) * DTYPE_BYTES[array.dtype]


class GpuResults:
    """Of `program`; `address` tells where a buffer is for a shape and symbols."""

    def __init__(self, driver: Any, program: Program, address: Callable[[int, PlacedShape, Mapping[str, int]], int]
                 ) -> None:
        self._driver, self._program, self._address = driver, program, address

    def output(self, i: int, target: Any, shape: PlacedShape, env: Mapping[str, int]) -> Any:
        """`target` with the numbers of output `i`; None: a numpy array."""
        b = self._program.buffers[i]
        source = self._address(i, shape, env)
        if target is None:
            target = np.empty(self.size(i, env), numpy_dtype(b.dtype))
        if isinstance(target, np.ndarray):
            self._driver.download(target, source)
        elif target.pointer != source:
            self._driver.copy(target.pointer, source, nbytes_of(target))
        return target

    def new(self, i: int, env: Mapping[str, int], stream: int | None) -> DeviceArray:
        """Memory for output `i`."""
        size, dtype = self.size(i, env), self._program.buffers[i].dtype
        return DeviceArray(self._driver, self._driver.alloc(prod(size) * DTYPE_BYTES[dtype]), dtype, size, stream)

    def lent(self, i: int, shape: PlacedShape, env: Mapping[str, int], stream: int | None,
             owner: Any) -> DeviceArray:
        """Output `i` where the run has left it."""
        return DeviceArray(self._driver, self._address(i, shape, env), self._program.buffers[i].dtype,
                           self.size(i, env), stream, owner=owner)

    def size(self, i: int, env: Mapping[str, int]) -> tuple[int, ...]:
        """Of buffer `i`."""
        return tuple(symbolic.evaluate(d, env) for d in self._program.buffers[i].shape)

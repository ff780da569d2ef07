"""Memory that nobody wrote, made to show: with ``XCC_POISON=1`` it is NaN (all bits set) in every run of every model.

What an executor allocates, arenas and outputs before each run, and `GUARD` bytes behind each of these buffers. A kernel
that reads what it has not written, or behind a buffer's end, and lets that count, gives NaN then, or -1 in integers;
else it often reads zeros, or what the run before left, and is right by accident.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.large_pages import MOST_BYTES, address_of

__all__ = ["GUARD", "PoisonedDriver", "guarded", "poison_cpu", "wanted"]

GUARD = 4096        # bytes behind a buffer: more than any access is wide
POISON = 0xFF


def wanted() -> bool:
    """Whether ``XCC_POISON`` asks for it."""
    text = os.environ.get("XCC_POISON", "0")
    if text not in ("0", "1"):
        raise UserError(f"XCC_POISON is '{text}': 1 fills memory that nobody wrote with NaN, 0 does not")
    return text == "1"


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of poison, and poison behind it, that begins with a cache line."""
    size = prod(shape) * dtype.itemsize
    if size > MOST_BYTES:
        raise MemoryError(f"{size} bytes")
    memory = np.full(size + GUARD + 64, POISON, np.uint8)
    return np.ndarray(shape, dtype, memory, -address_of(memory) % 64)


class PoisonedDriver:
    """A GPU's driver whose fresh memory is poison, with more of it behind the end."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def alloc(self, size: int) -> int:
        pointer: int = self._driver.alloc(size + GUARD)
        self._driver.fill(pointer, POISON, size + GUARD)
        return pointer

    def poison(self, memory: Mapping[Any, tuple[int, int]]) -> None:
        """Fills what `alloc` gave: pointers and bytes."""
        for pointer, size in memory.values():
            self._driver.fill(pointer, POISON, size + GUARD)


class _Outputs:
    """In the place of an xcc.runtime.outputs.OutputMemory."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray[Any, Any], int]:
        array = guarded(shape, dtype)
        return array, address_of(array)

    def make_ready(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Nothing is kept."""


def poison_cpu(executor: Any) -> None:
    """Has a CpuExecutor poison its arena and its outputs before each run; temporaries lie apart from each other."""
    memory, main = executor.memory, executor._main
    memory.planner.guard, memory.native = GUARD, None       # what the library plans has no guards
    executor._output_memory = [m and _Outputs() for m in executor._output_memory]

    def run(pointers: Any, symbols: Any) -> Any:
        memory.poison(POISON)
        return main(pointers, symbols)

    executor._main = run

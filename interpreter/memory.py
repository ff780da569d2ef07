"""Memory of a simulated GPU: buffers as bytes, and the memref values that point into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xcc.interpreter.races import Tracker

__all__ = ["Buffer", "MemRef", "any_of", "contiguous_strides", "pieces"]

Array = np.ndarray[Any, Any]
ALL_SET = 0x0101010101010101        # flags of eight bytes


@dataclass
class Buffer:
    """Bytes in one memory space.

    Attributes:
        data: all bytes; of a workgroup buffer, those of every workgroup of the batch one after another; of a private
            one, those of every thread.
        size: bytes that one owner (the grid, a workgroup, a thread) sees.
        space: "global", "workgroup" or "private".
        tracker: finds races, where asked for.
        written: a flag for each byte that holds a value (workgroup memory only).
        copying: a flag for each byte that an asynchronous copy may still write, where there has been one.
        unfenced: a flag for each byte written since the last fence of writes (workgroup memory only).
        empty: of an array without elements. What kernels may read of it, and nobody uses, is there, of any coordinates.
    """

    data: Array
    size: int
    space: str
    name: str = ""
    tracker: Tracker | None = None
    written: Array | None = None
    copying: Array | None = None
    unfenced: Array | None = None
    empty: bool = False
    _typed: dict[np.dtype[Any], Array] = field(default_factory=dict)

    def typed(self, dtype: np.dtype[Any]) -> Array:
        """The bytes seen as elements of `dtype`."""
        view = self._typed.get(dtype)
        if view is None:
            usable = len(self.data) // dtype.itemsize * dtype.itemsize
            view = self._typed[dtype] = self.data[:usable].view(dtype)
        return view


@dataclass
class MemRef:
    """A memref value: element (i, j) is number offset + i*strides[0] + j*strides[1] of `buffer` seen as `dtype`.

    Offset, sizes and strides are ints or int64 arrays with one entry a thread. `base` is the first element of the
    owner's part of the buffer.
    """

    buffer: Buffer
    dtype: np.dtype[Any]
    base: Array | int
    offset: Array | int
    sizes: Sequence[int | Array]
    strides: Sequence[int | Array]


def contiguous_strides(sizes: Sequence[int | Array]) -> list[int | Array]:
    """Row-major strides of `sizes`."""
    strides: list[int | Array] = []
    step: int | Array = 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return strides[::-1]


def pieces(flags: Array, byte: Array, size: int) -> tuple[Array, Array, int]:
    """The flags of the `size` bytes from each of `byte`, several at once: `flags` (one a byte) seen as integers, the
    numbers (accesses, pieces) of those that the accesses touch, and the integer whose flags are all set."""
    aligned = int(np.bitwise_or.reduce(byte)) | size | len(flags)
    step = min(aligned & -aligned, 8)
    return flags.view(f"u{step}"), (byte // step)[:, None] + np.arange(size // step), ALL_SET >> 8 * (8 - step)


def any_of(flags: Array | None, byte: Array, size: int) -> bool:
    """Whether a flag of the `size` bytes from each of `byte` is set, where there are flags."""
    if flags is None:
        return False
    seen, where, _ = pieces(flags, byte, size)
    return bool(seen[where].any())

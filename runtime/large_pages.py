"""Files that the system keeps in large pages: a model's weights then take a fraction of the address translations.

Linux maps 2 MiB of a file at once where it holds them in one piece of memory. It does for what is written in whole
aligned blocks, and for what it reads into a mapping that asks for large pages.
"""

from __future__ import annotations

import contextlib
import mmap
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BLOCK", "BlockWriter", "map_file", "release"]

BLOCK = 2 << 20
MOST = 512 * BLOCK      # bytes of one call: under what Linux writes at most


def map_file(path: str | Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The file's bytes, read-only, in large pages where the system has them. OSError, ValueError for an empty file."""
    with open(path, "rb") as f:
        mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):      # a kernel without large pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8)


def release(array: np.ndarray[Any, Any]) -> None:
    """Gives back the memory of the whole pages of `array`, a part of what :func:`map_file` gave; they are read from
    the file again when they are wanted. Nothing happens to any other array."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapped, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    first, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        with contextlib.suppress(OSError):      # or a large page that its neighbours read brings it back
            mapped.madvise(mmap.MADV_NOHUGEPAGE, first, end - first)
        mapped.madvise(mmap.MADV_DONTNEED, first, end - first)


class BlockWriter:
    """Writes to `file`, which is not buffered, in whole blocks; :meth:`flush` writes the rest."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._held = bytearray()
        self._at = 0

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self._at += len(view)
        if self._held:
            rest = BLOCK - len(self._held)
            self._held += view[:rest]
            view = view[rest:]
            if len(self._held) < BLOCK:
                return
            self.flush()
        whole = len(view) // BLOCK * BLOCK
        self._put(view[:whole])
        self._held += view[whole:]

    def flush(self) -> None:
        with memoryview(self._held) as view:
            self._put(view)
        self._held.clear()

    def _put(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            done += self._file.write(view[done:done + MOST])

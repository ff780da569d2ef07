"""Files and memory that the system keeps in huge pages, large pages here.

A model's weights then take a fraction of the address translations. Linux maps 2 MiB of a file at once where it holds
them in one piece of memory. It does for what is written in whole aligned blocks, and for what it reads into a mapping
that asks for large pages.

Memory that a run writes for the first time is cleared by the system page by page: a tenth of the time in large pages.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BLOCK", "MOST_BYTES", "BlockWriter", "address_of", "load_pages", "map_file", "release", "reserve"]

BLOCK = 2 << 20
LINE = 64               # bytes of a cache line
OWN = 1 << 17           # bytes from which memory is a mapping of its own; less comes from the allocator's lists
WORTH = 1 << 19         # bytes in small pages that take longer to clear than a large page
MOST_BYTES = 1 << 62    # what an address can count
POPULATE_READ = 22      # MADV_POPULATE_READ, of Linux 5.14
MOST = 512 * BLOCK      # bytes of one call: under what Linux writes at most


def map_file(path: str | Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The file's bytes, read-only, in large pages where the system has them. OSError, ValueError for an empty file."""
    with open(path, "rb") as f:
        mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):      # a kernel without large pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8)


def reserve(size: int, *, exact: bool) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], int]:
    """Memory for `size` bytes: an array, and where in it they begin, with a cache line.

    Much of it is in large pages where the system has them. `exact`: no byte behind the last small page is taken, as for
    memory that is cleared before anybody waits, or that a caller may hold many pieces of; else the rest may be a large
    page, too. MemoryError where there is not enough.
    """
    whole = size // BLOCK + (not exact and size % BLOCK >= WORTH)
    if size >= OWN and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError, OverflowError):       # no memory, or no more mappings for this process
            room = max(size, whole * BLOCK) + BLOCK * bool(whole)
            mapped = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            array = np.frombuffer(mapped, np.uint8)
            begin = -address_of(array) % BLOCK if whole else 0
            if whole:
                with contextlib.suppress(OSError):      # a kernel without large pages
                    mapped.madvise(mmap.MADV_HUGEPAGE, begin, whole * BLOCK)
            return array, begin
    if size > MOST_BYTES:
        raise MemoryError(f"{size} bytes")
    array = np.empty(size + LINE, np.uint8)
    return array, -address_of(array) % LINE


def address_of(array: Any) -> int:
    """Of an array's first element. `array.ctypes.data` takes several times as long, as long as a small kernel."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):    # read-only, empty, or of a type that buffers do not know
        return int(array.ctypes.data)


def release(array: np.ndarray[Any, Any]) -> None:
    """Gives back the memory of the whole pages of `array`, a part of what :func:`map_file` gave; they are read from
    the file again when they are wanted. Nothing happens to any other array."""
    if (mapped := _mapping(array)) is None:
        return
    start = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    first, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        with contextlib.suppress(OSError):      # or a large page that its neighbours read brings it back
            mapped.madvise(mmap.MADV_NOHUGEPAGE, first, end - first)
        mapped.madvise(mmap.MADV_DONTNEED, first, end - first)


def load_pages(array: np.ndarray[Any, Any]) -> None:
    """Maps the pages of `array`, a part of what :func:`map_file` gave, as reading all of it would."""
    if array.nbytes and (mapped := _mapping(array)) is not None:
        start = address_of(array) - address_of(np.frombuffer(mapped, np.uint8))
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        with contextlib.suppress(OSError):      # an older kernel
            mapped.madvise(POPULATE_READ, first, start + array.nbytes - first)


def _mapping(array: np.ndarray[Any, Any]) -> mmap.mmap | None:
    """The file's mapping that holds `array`, where the system takes advice about it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    return mapped if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None


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

"""A model's shared object: loaded from memory, and where its code lies."""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
import weakref

__all__ = ["Place", "code_places", "follow_forks", "load_library"]

Place = tuple[int, int]     # an address and how many bytes

_HEADERS, _LOAD, _WRITE = (32, 54), 1, 2    # ELF: where the program headers are and how many; a kind; a flag


class _Where(ctypes.Structure):
    """Dl_info."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def code_places(library: ctypes.CDLL, blob: bytes) -> list[Place]:
    """The parts of the shared object `blob`, loaded as `library`, that nothing writes: code and constants."""
    where = _Where()
    if not ctypes.CDLL(None).dladdr(ctypes.cast(library.xcc_main, ctypes.c_void_p), ctypes.byref(where)):
        return []
    table, = struct.unpack_from("<Q", blob, _HEADERS[0])
    size, count = struct.unpack_from("<HH", blob, _HEADERS[1])
    parts = [struct.unpack_from("<IIQQQQ", blob, table + n * size) for n in range(count)]
    return [((where.base or 0) + address, held) for kind, flags, _, address, _, held in parts
            if kind == _LOAD and not flags & _WRITE]


def load_library(blob: bytes) -> ctypes.CDLL:
    """The shared object `blob`, opened without a file where the system can.

    The memory file stays open: the loader knows libraries by path, and a descriptor's number that comes again would
    give the old library. Libraries are never unloaded, since their threads live on.
    """
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("xcc-model")
        os.truncate(handle, len(blob))
        view = memoryview(blob)
        while view:
            view = view[os.write(handle, view):]
        return ctypes.CDLL(f"/proc/self/fd/{handle}")
    with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
        file.write(blob)
    try:
        return ctypes.CDLL(file.name)
    finally:
        os.unlink(file.name)


_LIBRARIES: weakref.WeakSet[ctypes.CDLL] = weakref.WeakSet()


def follow_forks(library: ctypes.CDLL) -> None:
    """Tells the thread pool of `library` when this process is a fork's child, in which it has no threads."""
    _LIBRARIES.add(library)


def _after_fork() -> None:
    for library in _LIBRARIES:
        library.xcc_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

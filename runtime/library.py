"""A model's shared object: loaded from memory, unloaded when nothing uses it any more."""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["Library", "load_library"]


class Library(ctypes.CDLL):
    """A shared object that is unloaded at once when nothing holds it, or a function of it, any more.

    A function that CDLL makes would hold itself, and its library until cycles are looked for.
    """

    held: Any = None

    def __getitem__(self, name: str) -> Any:
        address = _system().dlsym(ctypes.c_void_p(self._handle), name.encode())
        if address is None:
            raise AttributeError(f"{self._name} has no function '{name}'")
        function: Any = self._FuncPtr(address)
        function.library = self
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]


def load_library(blob: bytes) -> Library:
    """The shared object `blob`, opened without a file where the system can.

    When it goes, the threads of its pool are ended, and its memory and its file are given back. A pool that was
    compiled before there was ``xcc_stop`` cannot be ended: it keeps its library until the process ends.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
            file.write(blob)
        try:
            return _watched(Library(file.name), None)
        finally:
            os.unlink(file.name)
    memory = os.memfd_create("xcc-model")
    try:
        os.truncate(memory, len(blob))
        view = memoryview(blob)
        while view:
            view = view[os.write(memory, view):]
        library = Library(f"/proc/self/fd/{memory}")
    except OSError:
        os.close(memory)
        raise
    return _watched(library, memory)


_LIBRARIES: weakref.WeakSet[Library] = weakref.WeakSet()


def _watched(library: Library, memory: int | None) -> Library:
    """`library`, whose pool is told of forks and which is unloaded when it goes. `memory` is its file.

    What is watched is an array that it holds. The collector of cycles knows no arrays; where something that it knows is
    part of a cycle, it calls who watches that first, and then ``__del__`` of the others, which may run the model.
    """
    if hasattr(library, "xcc_after_fork"):
        _LIBRARIES.add(library)
    stop = getattr(library, "xcc_stop", None)
    if stop is None and hasattr(library, "xcc_set_threads"):
        return library
    library.held = np.empty(0)
    ending = weakref.finalize(library.held, _unload, library._handle, library._name, memory,
                              _pointer(stop).value if stop else None)
    ending.atexit = False       # other threads may still run the model when the process ends
    return library


def _unload(handle: int, name: str, memory: int | None, stop: int | None) -> None:
    """Ends the threads, then unloads their code, then closes its file: an interrupt may leave the rest as it is.

    The system's loader knows libraries by path. The file of one that is there in spite of this, as some systems never
    unload, stays open: a descriptor of its number would give it again.
    """
    if stop is not None:
        ctypes.CFUNCTYPE(None)(stop)()
    _system().dlclose(ctypes.c_void_p(handle))
    if memory is not None and not _is_loaded(name):
        os.close(memory)


def _is_loaded(name: str) -> bool:
    return _system().dlopen(os.fsencode(name), os.RTLD_NOW | os.RTLD_NOLOAD) is not None


def _pointer(function: Any) -> ctypes.c_void_p:
    """To a function's code. What ctypes.cast returns would hold itself, and the library with it."""
    return ctypes.c_void_p.from_buffer(function)


@lru_cache(maxsize=1)
def _system() -> ctypes.CDLL:
    """The functions of the system's loader."""
    functions = ctypes.CDLL(None)
    functions.dlopen.restype = functions.dlsym.restype = ctypes.c_void_p
    return functions


def _after_fork() -> None:
    """In a fork's child a pool has no threads."""
    for library in _LIBRARIES:
        library.xcc_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

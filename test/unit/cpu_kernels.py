"""Compiles tile programs for this machine and calls them with numpy arrays."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from xcc.context import parse_module, shared_context
from xcc.passes.base import PassContext
from xcc.runtime.library import load_library
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen, link
from xcc.targets.cpu.pipeline import kernel_pipeline
from xcc.targets.llvm_text import llvm_ir


def llvm_text(text: str, chip: Any = None) -> str:
    """LLVM IR of the tile programs in `text`, before optimization."""
    chip = chip or cpu_chip.host()
    module = parse_module(text, shared_context(), "test")
    with module.context:
        kernel_pipeline().run(module, PassContext(chip=chip))
        return llvm_ir(module)


def assembly(text: str, chip: Any = None) -> str:
    chip = chip or cpu_chip.host()
    listing: str = codegen.target_machine(chip).emit_assembly(codegen.optimized(llvm_text(text, chip), chip))
    return listing


def load(text: str, threads: int = 2, chip: Any = None) -> Any:
    """A library whose functions are the kernels of `text`, compiled for this machine or for `chip`."""
    chip = chip or cpu_chip.host()
    blob = link.link_shared([codegen.emit_object(llvm_text(text, chip), chip), codegen.thread_pool(chip)])
    library = load_library(blob)
    library.xcc_set_threads(threads)
    return library


class Guarded:
    """An array whose last byte is followed by a page that must not be touched."""

    def __init__(self, value: np.ndarray) -> None:
        import mmap

        page = mmap.PAGESIZE
        size = -(-max(1, value.nbytes) // page) * page
        self.memory = mmap.mmap(-1, size + page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None)
        assert libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(page), 0) == 0
        self.address = base + size - value.nbytes
        raw = (ctypes.c_char * value.nbytes).from_address(self.address)
        self.array = np.frombuffer(raw, value.dtype).reshape(value.shape)
        self.array[...] = value


def call(library: Any, name: str, *arguments: Any) -> None:
    """Arrays are put against a guard page and copied back; ints are symbols."""
    guarded = [Guarded(a) if isinstance(a, np.ndarray) else a for a in arguments]
    values = [ctypes.c_void_p(a.address) if isinstance(a, Guarded) else ctypes.c_int64(a) for a in guarded]
    function = getattr(library, name)
    function.restype = None
    function(*values)
    for given, used in zip(arguments, guarded, strict=True):
        if isinstance(used, Guarded):
            given[...] = used.array

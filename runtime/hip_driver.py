"""The HIP runtime API through ctypes: what runs kernels on an AMD GPU. Needs libamdhip64.so and nothing else.

Reference: "HIP API reference", modules "Module management",
"Stream management", "Memory management" and "Graph management".
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.stream_driver import Handle, StreamDriver, parameters, sizes

__all__ = ["HipDriver", "HipError", "device_architecture"]

_LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
              "/opt/rocm/lib/libamdhip64.so")
_PROPERTIES_BYTES = 1 << 14   # more than hipDeviceProp_t of any release


class HipError(RuntimeError):
    """A call failed: the call, the error's name and the runtime's text."""


@lru_cache(maxsize=1)
def library() -> Any:
    """libamdhip64; UserError when this machine has none."""
    for name in _LIBRARIES:
        try:
            lib = ctypes.CDLL(name)
        except OSError:
            continue
        lib.hipGetErrorName.restype = lib.hipGetErrorString.restype = ctypes.c_char_p
        return lib
    raise UserError("there is no AMD GPU runtime on this machine (libamdhip64.so is not found)")


def call(name: str, *args: Any) -> None:
    """Calls a HIP function; HipError when it does not return hipSuccess."""
    lib = library()
    status = int(getattr(lib, name)(*args))
    if status:
        what = (lib.hipGetErrorName(status) or b"error").decode()
        text = (lib.hipGetErrorString(status) or b"no text").decode()
        raise HipError(f"{name} failed: {what} ({status}): {text}")


def device_architecture(number: int = 0) -> str:
    """The chip of GPU `number`, e.g. "gfx942"; "" when there is no runtime or no such GPU.

    It is read out of hipDeviceProp_t by its form: the struct's layout differs between releases, and the architecture
    is its text that begins with gfx.
    """
    try:
        call("hipInit", ctypes.c_uint(0))
        properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        name = "hipGetDevicePropertiesR0600" if hasattr(library(), "hipGetDevicePropertiesR0600") \
            else "hipGetDeviceProperties"
        call(name, properties, ctypes.c_int(number))
    except (UserError, HipError):
        return ""
    found = re.search(rb"gfx[0-9a-f]{3,5}", properties.raw)
    return found[0].decode() if found else ""


class HipDriver(StreamDriver):
    """One GPU and one stream."""

    device_type = 10       # DLPack's kDLROCM
    prefix = "hip"
    renamed = MappingProxyType({"MemFree": "hipFree"})
    wait_for_all = "DeviceSynchronize"

    def __init__(self, number: int = 0) -> None:
        super().__init__(number)
        self._images: dict[int, Any] = {}
        call("hipInit", ctypes.c_uint(0))
        self.activate()
        call("hipStreamCreate", ctypes.byref(self._own_stream))

    def call(self, name: str, *args: Any) -> None:
        call(name, *args)

    def activate(self) -> None:
        """Makes the GPU current on the calling thread."""
        call("hipSetDevice", ctypes.c_int(self.number))

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        before = ctypes.c_int()
        call("hipGetDevice", ctypes.byref(before))
        self.activate()
        try:
            yield
        finally:
            call("hipSetDevice", before)

    @property
    def architecture(self) -> str:
        return device_architecture(self.number)

    # -- code ---------------------------------------------------------------------------------------------------

    def load(self, blob: bytes) -> Any:
        """A module from a linked code object."""
        module = Handle()
        image = ctypes.create_string_buffer(blob, len(blob))
        call("hipModuleLoadData", ctypes.byref(module), image)
        self._images[module.value or 0] = image     # the runtime may read it lazily
        return module

    def unload(self, module: Any) -> None:
        super().unload(module)
        self._images.pop(module.value or 0, None)

    def function(self, module: Any, name: str, shared_bytes: int = 0) -> Any:
        """The kernel `name`. Its LDS is in its code; `shared_bytes` more are given at launch."""
        function = Handle()
        call("hipModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
        return function

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool = False) -> None:
        """Enqueues a kernel whose parameters are `pointers`, then `symbols` as i64. An empty grid is no launch.

        early: as in CudaDriver; no code for AMD GPUs asks for it.
        """
        if 0 in grid:
            return
        params, _alive = parameters(pointers, symbols)
        call("hipModuleLaunchKernel", function, *sizes(grid, block, shared_bytes), self._stream, params, None)

    # -- memory -------------------------------------------------------------------------------------------------

    def alloc(self, size: int) -> int:
        """Device memory, aligned to 256 bytes."""
        pointer = ctypes.c_void_p()
        call("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer.value or 0

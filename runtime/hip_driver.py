"""The HIP runtime API through ctypes: what runs kernels on an AMD GPU. Needs libamdhip64.so and nothing else.

Reference: "HIP API reference", modules "Module management",
"Stream management", "Memory management" and "Graph management".
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from xcc.diagnostics import UserError, counted
from xcc.runtime.stream_driver import Handle, StreamDriver, parameters, sizes

__all__ = ["HipDriver", "HipError", "device_architecture", "on_gpu"]

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


def gpu_count() -> int:
    """How many GPUs there are; HipError where the runtime has none."""
    call("hipInit", ctypes.c_uint(0))
    count = ctypes.c_int()
    call("hipGetDeviceCount", ctypes.byref(count))
    return count.value


@contextlib.contextmanager
def on_gpu(number: int) -> Iterator[None]:
    """GPU `number` is current on the calling thread meanwhile, and then what was before; UserError where there is no
    such one."""
    count = gpu_count()
    if not 0 <= number < count:
        raise UserError(f"there is no GPU {number}: this machine has {counted(count, 'GPU')}, from number 0 on")
    before = ctypes.c_int()
    call("hipGetDevice", ctypes.byref(before))
    call("hipSetDevice", ctypes.c_int(number))
    try:
        yield
    finally:
        call("hipSetDevice", before)


class HipDriver(StreamDriver):
    """One GPU and one stream."""

    device_type = 10       # DLPack's kDLROCM
    prefix = "hip"
    renamed = MappingProxyType({"MemFree": "hipFree"})
    wait_for_all = "DeviceSynchronize"

    def __init__(self, number: int = 0) -> None:
        """GPU `number`, which is current on the calling thread from now on."""
        super().__init__(number)
        self._images: dict[int, Any] = {}
        self._alone, self._before = gpu_count() == 1, ctypes.c_int()
        self.activate()
        call("hipStreamCreate", ctypes.byref(self._own_stream))

    def call(self, name: str, *args: Any) -> None:
        call(name, *args)

    def activate(self) -> None:
        """Makes the GPU current on the calling thread."""
        call("hipSetDevice", ctypes.c_int(self.number))

    def enter(self) -> None:
        if not self._alone:
            call("hipGetDevice", ctypes.byref(self._before))
        self.activate()

    def leave(self) -> None:
        if not self._alone:
            call("hipSetDevice", self._before)

    def current(self) -> AbstractContextManager[None]:
        return on_gpu(self.number)

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

    def wait_for_gpu(self, number: int) -> None:
        """Waits for the default stream of another GPU."""
        with on_gpu(number):
            call("hipStreamSynchronize", None)

    def copy_from(self, number: int, target: int, source: int, size: int) -> None:
        """Copies to this GPU from another one, after what its default stream has come to, and waits for that."""
        if not size:
            return
        self.wait_for_gpu(number)
        call("hipMemcpyPeerAsync", Handle(target), ctypes.c_int(self.number), Handle(source), ctypes.c_int(number),
             ctypes.c_size_t(size), self._stream)
        self.synchronize()

"""The functions of libcuda.so.1 by name, the GPUs that they know, and which of them is current on a thread."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from xcc.diagnostics import UserError, counted

__all__ = ["CudaError", "attribute", "call", "context_of", "device_of", "error", "find_gpu", "gpu_count", "library",
           "on_gpu"]

_ATTRIBUTES = {"sms": 16, "major": 75, "minor": 76}


class CudaError(RuntimeError):
    """A driver call failed: the call, the error's name and the driver's text."""


@lru_cache(maxsize=1)
def library() -> Any:
    """libcuda; UserError when this machine has none."""
    names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UserError("there is no NVIDIA driver on this machine (libcuda.so.1 is not found)")


def call(name: str, *args: Any) -> None:
    """Calls a driver function; CudaError when it does not return CUDA_SUCCESS."""
    status = int(getattr(library(), name)(*args))
    if status:
        raise error(name, status)


def error(name: str, status: int) -> CudaError:
    """What `status`, which function `name` returned, means."""
    lib, what, text = library(), ctypes.c_char_p(), ctypes.c_char_p()
    lib.cuGetErrorName(status, ctypes.byref(what))
    lib.cuGetErrorString(status, ctypes.byref(text))
    return CudaError(f"{name} failed: {(what.value or b'error').decode()} ({status}): "
                     f"{(text.value or b'no text').decode()}")


def find_gpu(number: int = 0) -> tuple[int, int, int] | None:
    """(major, minor, SMs) of a GPU; None when there is no driver or no such GPU."""
    try:
        device = device_of(number)
        return attribute(device, "major"), attribute(device, "minor"), attribute(device, "sms")
    except (UserError, CudaError):
        return None


def gpu_count() -> int:
    """How many GPUs there are; CudaError where the driver has none."""
    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    return count.value


def device_of(number: int) -> ctypes.c_int:
    """The handle of GPU `number`; UserError where there is none."""
    count = gpu_count()
    if not 0 <= number < count:
        raise UserError(f"there is no GPU {number}: this machine has {counted(count, 'GPU')}, from number 0 on")
    device = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(device), number)
    return device


def attribute(device: ctypes.c_int, name: str) -> int:
    """One of "major", "minor" (of the compute capability) and "sms"."""
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), _ATTRIBUTES[name], device)
    return value.value


@cache
def context_of(number: int) -> ctypes.c_void_p:
    """The primary context of GPU `number`, the one that other libraries use, kept as long as the process."""
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device_of(number))
    return context


@contextlib.contextmanager
def on_gpu(number: int) -> Iterator[None]:
    """GPU `number` is current on the calling thread meanwhile, and then what was before."""
    call("cuCtxPushCurrent_v2", context_of(number))
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

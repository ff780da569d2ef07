"""Arrays of other libraries through DLPack, including the element types and devices that numpy refuses."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.dtypes import numpy_dtype

__all__ = ["CPU", "CUDA", "ON_HOST", "ROCM", "DlTensor", "import_dlpack", "to_numpy"]

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
DEFAULT_STREAM = 1      # how DLPack calls CUDA's default stream, whose handle is 0
ON_HOST = (CPU, CUDA_HOST, ROCM_HOST)


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DTYPES = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "ui8", (1, 16): "ui16",
           (1, 32): "ui32", (1, 64): "ui64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16",
           (6, 8): "i1", (10, 8): "f8E4M3FN", (12, 8): "f8E5M2"}


@dataclass(frozen=True)
class DlTensor:
    """A borrowed array: `pointer` stays valid as long as `owner` lives. Strides are in elements."""

    pointer: int
    device: int
    device_id: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: Any
    shared: bool = False        # with what a run writes: it is to be copied before

    @property
    def contiguous(self) -> bool:
        return all(n == 1 or s == c for n, s, c in zip(self.shape, self.strides, _compact(self.shape), strict=True))


def import_dlpack(value: Any, stream: int | None = None) -> DlTensor:
    """Reads ``value.__dlpack__()``; `value` itself keeps the memory alive.

    stream: the handle of the CUDA stream on which it is used; None: one that waits for the default stream.
    """
    if getattr(value, "requires_grad", False):
        value = value.detach()
    device, number = map(int, value.__dlpack_device__())
    with _current(device, number):      # PyTorch exports from the current device alone
        capsule = value.__dlpack__(stream=stream or DEFAULT_STREAM) if device == CUDA else value.__dlpack__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    t = _Tensor.from_address(get_pointer(capsule, b"dltensor"))
    dtype = _DTYPES.get((t.code, t.bits)) if t.lanes == 1 else None
    if dtype is None:
        raise UserError(f"DLPack element type (code {t.code}, {t.bits} bits, {t.lanes} lanes) is not supported")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else _compact(shape)
    return DlTensor((t.data or 0) + t.byte_offset, t.device.type, t.device.id, dtype, shape, strides, (value, capsule))


def _current(device: int, number: int) -> AbstractContextManager[None]:
    """The device is current on this thread meanwhile, where there is a choice."""
    if device not in (CUDA, ROCM) or not _is_one_of_many(device):
        return nullcontext()
    gpu: AbstractContextManager[None] = _gpus(device).on_gpu(number)
    return gpu


def _gpus(device: int) -> Any:
    return importlib.import_module("xcc.runtime.cuda_api" if device == CUDA else "xcc.runtime.hip_driver")


@cache
def _is_one_of_many(device: int) -> bool:
    try:
        return int(_gpus(device).gpu_count()) > 1
    except (UserError, RuntimeError):
        return False


def to_numpy(tensor: DlTensor) -> np.ndarray[Any, Any]:
    """A view of host memory; UserError for memory of a device."""
    if tensor.device not in ON_HOST:
        raise UserError(f"the array is on DLPack device {tensor.device}; copy it to host memory first")
    dtype = numpy_dtype(tensor.dtype)
    if 0 in tensor.shape:
        return np.empty(tensor.shape, dtype)
    span = (1 + sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.strides, strict=True))) * dtype.itemsize
    raw = _Borrowed((ctypes.c_char * span).from_address(tensor.pointer), tensor.owner)
    flat = np.frombuffer(memoryview(raw.buffer), np.uint8)
    strides = tuple(s * dtype.itemsize for s in tensor.strides)
    view = np.ndarray(tensor.shape, dtype, flat.data, 0, strides)
    return _keep(view, tensor.owner)


class _Borrowed:
    def __init__(self, buffer: Any, owner: Any) -> None:
        self.buffer = buffer
        buffer._owner = owner


class _View(np.ndarray[Any, Any]):
    """An array that keeps the owner of its memory."""

    owner: Any = None


def _keep(view: np.ndarray[Any, Any], owner: Any) -> np.ndarray[Any, Any]:
    kept = view.view(_View)
    kept.owner = owner
    return kept


def _compact(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))

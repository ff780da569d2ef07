"""An array in a GPU's memory, handed to other libraries through DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from xcc.runtime.dlpack import DEFAULT_STREAM
from xcc.runtime.dtypes import numpy_dtype

__all__ = ["DeviceArray"]

_CODES = {"i": 0, "u": 1, "f": 2}
_SPECIAL = {"bf16": (4, 16), "i1": (6, 8), "f8E4M3FN": (10, 8), "f8E5M2": (12, 8)}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]
_EXPORTED: dict[int, Any] = {}     # address of a managed tensor -> what it keeps alive


def _forget(managed: Any) -> None:
    _EXPORTED.pop(ctypes.addressof(managed.contents), None)


_RELEASE = _DELETER(_forget)
_NAME = b"dltensor"      # a consumer renames the capsule and calls the deleter itself
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", ctypes.pythonapi))


def _drop(capsule: int) -> None:
    if _is_valid(capsule, _NAME):
        _EXPORTED.pop(_pointer(capsule, _NAME), None)


_DROP = _DESTRUCTOR(_drop)


class DeviceArray:
    """Contiguous device memory. ``np.asarray`` copies it to the host; DLPack shares it."""

    shared = False      # as of a DlTensor

    def __init__(self, driver: Any, pointer: int, dtype: str, shape: tuple[int, ...], stream: int | None = None,
                 owner: Any = None) -> None:
        """stream: the caller's on which it is filled; None: it is. owner: whose memory it is; None: its own."""
        self.driver, self.pointer, self.dtype, self.shape = driver, pointer, dtype, shape
        self._stream, self._owner = stream, owner

    def __del__(self) -> None:
        if self._owner is not None:
            return
        try:
            with self.driver.current():     # in whatever thread the last reference went
                self.driver.free(self.pointer)
        except Exception:   # the driver may be gone at interpreter exit
            return

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        out = np.empty(self.shape, numpy_dtype(self.dtype))
        self._wait()
        with self.driver.current():
            self.driver.download(out, self.pointer)
        return out if dtype is None else out.astype(dtype)

    @property
    def device_id(self) -> int:
        """The number of its GPU."""
        return int(self.driver.number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.driver.device_type, self.driver.number

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """A DLPack capsule; the work that fills the array is complete, or goes before what comes on `stream`."""
        if self._stream is None or (0 if stream == DEFAULT_STREAM else stream) != self._stream:
            self._wait()
        n = len(self.shape)
        strides, step = [0] * n, 1
        for d in reversed(range(n)):
            strides[d], step = step, step * self.shape[d]
        code, bits = _SPECIAL.get(self.dtype) or (_CODES[self.dtype[0]], int(self.dtype.lstrip("uif")))
        array = ctypes.c_int64 * max(1, n)
        sizes, steps = array(*self.shape), array(*strides)
        tensor = _Tensor(self.pointer, _Device(*self.__dlpack_device__()), n, code, bits, 1, sizes, steps, 0)
        managed = _Managed(tensor, None, _RELEASE)
        address = ctypes.addressof(managed)
        _EXPORTED[address] = (self, managed, sizes, steps)
        return _new(address, _NAME, _DROP)

    def _wait(self) -> None:
        if self._stream is not None:
            with self.driver.current():
                self.driver.wait_for(self._stream)
            self._stream = None

"""What callers of ``Model.run`` give for inputs, as an executor takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime import dlpack, dtypes
from xcc.runtime.signature import TensorInfo, check_tensor, from_python

__all__ = ["given_input", "gpu_of"]


def given_input(info: TensorInfo, value: Any, place: Callable[[], tuple[int, int]],
                stream: int | None = None) -> Any:
    """A contiguous numpy array, or a DlTensor where `value` is contiguous on a device such as the model runs on, which
    `place` tells: its kind as DLPack has it, and its number, which may be another one. UserError where the input `info`
    cannot be that. `stream`: where it is used."""
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        if hasattr(value, "resolve_neg"):
            value = value.resolve_neg()         # PyTorch shares a tensor that it is to negate as if it were not
        try:
            own = stream is not None and tuple(map(int, value.__dlpack_device__())) == place()
            tensor = dlpack.import_dlpack(value, stream if own else None)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise UserError(f"input '{info.name}': the {type(value).__name__} cannot be shared: {e}") from None
        check_tensor(info, tensor.dtype, tensor.shape)
        if tensor.device == place()[0] != dlpack.CPU and tensor.contiguous:
            return tensor
        return np.ascontiguousarray(dlpack.to_numpy(tensor))
    if not isinstance(value, (np.ndarray, np.generic)):
        value = from_python(info, value)
    check_tensor(info, dtypes.name_of(value.dtype), value.shape)
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def gpu_of(values: Iterable[Any]) -> int | None:
    """The number of the GPU that the first array on one is on; None where none is."""
    for value in values:
        if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack_device__"):
            kind, number = value.__dlpack_device__()
            if kind in (dlpack.CUDA, dlpack.ROCM):
                return int(number)
    return None

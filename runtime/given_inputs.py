"""What callers of ``Model.run`` give for inputs, as an executor takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime import dlpack, dtypes
from xcc.runtime.signature import TensorInfo, check_tensor, from_python

__all__ = ["given_input"]


def given_input(info: TensorInfo, value: Any, device: Callable[[], int],
                stream: int | None = None) -> Any:
    """A contiguous numpy array, or a DlTensor where `value` is contiguous on the device that the model runs on, which
    `device` tells as DLPack calls it; UserError where the input `info` cannot be that. `stream`: where it is used."""
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        if hasattr(value, "resolve_neg"):
            value = value.resolve_neg()         # PyTorch shares a tensor that it is to negate as if it were not
        try:
            tensor = dlpack.import_dlpack(value, stream)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise UserError(f"input '{info.name}': the {type(value).__name__} cannot be shared: {e}") from None
        check_tensor(info, tensor.dtype, tensor.shape)
        if tensor.device == device() != dlpack.CPU and tensor.contiguous:
            return tensor
        return np.ascontiguousarray(dlpack.to_numpy(tensor))
    if not isinstance(value, (np.ndarray, np.generic)):
        value = from_python(info, value)
    check_tensor(info, dtypes.name_of(value.dtype), value.shape)
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)

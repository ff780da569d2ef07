"""Torch's element types, and tensors as numpy arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

__all__ = ["NAMES", "name_of", "to_numpy", "torch_dtype"]

NAMES: dict[torch.dtype, str] = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2", torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ", torch.bool: "i1",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.uint8: "ui8", torch.uint16: "ui16", torch.uint32: "ui32", torch.uint64: "ui64",
}
_TYPES = {name: dtype for dtype, name in NAMES.items()}
_CODES: dict[torch.dtype, tuple[torch.dtype, Any]] = {     # numpy has no such type: integers, then ml_dtypes' own
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
}


def name_of(dtype: torch.dtype) -> str:
    """xcc's name of a torch dtype; torch's own for one that xcc has not (``complex64``)."""
    return NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of an xcc element type."""
    return _TYPES[name]


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """`tensor` as a contiguous array: its own memory where that is on the host and dense, else a copy. Complex numbers
    have both parts in a last dim."""
    plain = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    if plain.dtype in _CODES:
        code, own = _CODES[plain.dtype]
        array: np.ndarray[Any, Any] = plain.view(code).numpy().view(own)
        return array
    array = plain.numpy()
    return array

"""Element types by the names that programs use, and as numpy types."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc.diagnostics import UserError

__all__ = ["PLAIN", "name_of", "numpy_dtype"]

PLAIN: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}
_EXTRA: dict[str, str] = {
    "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu", "f4E2M1FN": "float4_e2m1fn",
    "i2": "int2", "ui2": "uint2", "i4": "int4", "ui4": "uint4",
}


def numpy_dtype(name: str) -> Any:
    """The numpy type of `name`; types that numpy lacks come from ml_dtypes."""
    if name in PLAIN:
        return np.dtype(PLAIN[name])
    if name in _EXTRA:
        try:
            import ml_dtypes
        except ImportError:
            raise UserError(f"arrays of {name} need the package ml_dtypes") from None
        return np.dtype(getattr(ml_dtypes, _EXTRA[name]))
    raise UserError(f"there is no element type '{name}'")


_NAMES = {np.dtype(plain): name for name, plain in PLAIN.items()}


def name_of(dtype: Any) -> str:
    """The program's name of a numpy type; the type's own name when programs have none."""
    name = _NAMES.get(dtype)
    if name is not None:
        return name
    text = str(np.dtype(dtype))
    return {v: k for k, v in _EXTRA.items()}.get(text, text)

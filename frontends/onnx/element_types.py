"""Element types: ONNX's numbers and numpy's dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from xcc.diagnostics import UserError
from xcc.dialects.xt.types import dtype_name, is_float, numpy_dtype, width

__all__ = ["DType", "ONNX_NAMES", "bits", "from_onnx", "is_floating", "is_unsigned", "name_from_onnx"]

DType = np.dtype[Any]

ONNX_NAMES: dict[int, str] = {
    TensorProto.FLOAT: "f32", TensorProto.DOUBLE: "f64", TensorProto.FLOAT16: "f16", TensorProto.BFLOAT16: "bf16",
    TensorProto.FLOAT8E4M3FN: "f8E4M3FN", TensorProto.FLOAT8E5M2: "f8E5M2",
    TensorProto.FLOAT8E4M3FNUZ: "f8E4M3FNUZ", TensorProto.FLOAT8E5M2FNUZ: "f8E5M2FNUZ",
    TensorProto.FLOAT8E8M0: "f8E8M0FNU", TensorProto.FLOAT4E2M1: "f4E2M1FN",
    TensorProto.BOOL: "i1",
    TensorProto.INT2: "i2", TensorProto.INT4: "i4", TensorProto.INT8: "i8", TensorProto.INT16: "i16",
    TensorProto.INT32: "i32", TensorProto.INT64: "i64",
    TensorProto.UINT2: "ui2", TensorProto.UINT4: "ui4", TensorProto.UINT8: "ui8", TensorProto.UINT16: "ui16",
    TensorProto.UINT32: "ui32", TensorProto.UINT64: "ui64",
}


def name_from_onnx(onnx_type: int) -> str:
    """The xt element type of a TensorProto.DataType; UserError for strings and complex numbers."""
    if onnx_type not in ONNX_NAMES:
        known = onnx_type in TensorProto.DataType.values()
        shown = TensorProto.DataType.Name(onnx_type) if known else f"number {onnx_type}"
        raise UserError(f"element type {shown} is not supported")
    return ONNX_NAMES[onnx_type]


def from_onnx(onnx_type: int) -> DType:
    """The numpy dtype of a TensorProto.DataType."""
    dtype: DType = np.dtype(numpy_dtype(name_from_onnx(onnx_type)))
    return dtype


def is_floating(dtype: DType) -> bool:
    return is_float(dtype_name(dtype))


def is_unsigned(dtype: DType) -> bool:
    return dtype_name(dtype).startswith("ui")


def bits(dtype: DType) -> int:
    """The width in bits; 1 for bool, 2 and 4 for the packed types."""
    return width(dtype_name(dtype))

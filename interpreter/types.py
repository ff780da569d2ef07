"""MLIR types as numpy dtypes, attributes as arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from xcc._mlir import Attribute, Type, ir
from xcc.diagnostics import UserError

__all__ = ["DTYPES", "constant_array", "dtype_of", "poison_of", "space_of", "unsigned", "vector_shape"]

DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(t) for name, t in {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "i1": np.bool_, "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "index": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}.items()}

_SPACES = {"": "global", "1": "global", "1 : i64": "global", "#gpu.address_space<global>": "global",
           "3": "workgroup", "3 : i64": "workgroup", "3 : i32": "workgroup",
           "#gpu.address_space<workgroup>": "workgroup",
           "5": "private", "5 : i64": "private", "#gpu.address_space<private>": "private"}


def poison_of(dtype: np.dtype[Any]) -> Any:
    """What nobody wrote: NaN, or all bits set."""
    return np.frombuffer(b"\xff" * dtype.itemsize, dtype)[0] if dtype != np.bool_ else True


def element_type(type_: Type) -> Type:
    """The element type of a shaped type, `type_` itself else."""
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def dtype_of(type_: Type) -> np.dtype[Any]:
    """The numpy dtype of a scalar type or of a shaped type's elements."""
    text = str(element_type(type_))
    if text not in DTYPES:
        raise UserError(f"the interpreter has no numbers of type {text}")
    return DTYPES[text]


def vector_shape(type_: Type) -> tuple[int, ...]:
    """The shape of a vector type, () of a scalar."""
    return tuple(type_.shape) if isinstance(type_, ir.ShapedType) else ()


def space_of(memref_type: Any) -> str:
    """"global", "workgroup" or "private"."""
    space = memref_type.memory_space
    text = "" if space is None else str(space)
    if text not in _SPACES:
        raise UserError(f"the interpreter does not know the memory space {text}")
    return _SPACES[text]


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integer dtype of the same width; i1 stays."""
    return _UNSIGNED.get(dtype, dtype) if dtype.kind != "i" else np.dtype(f"u{dtype.itemsize}")


_UNSIGNED = {np.dtype(ml_dtypes.int2): np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.int4): np.dtype(ml_dtypes.uint4)}


def constant_array(attr: Attribute, type_: Type) -> np.ndarray[Any, Any]:
    """A constant as an array (1, *shape): the leading axis is that of the threads."""
    dtype, shape = dtype_of(type_), vector_shape(type_)
    if not isinstance(attr, ir.DenseElementsAttr):
        return np.full((1, *shape), _scalar(attr), dtype)
    if attr.is_splat:
        return np.full((1, *shape), _scalar(attr.get_splat_value()), dtype)
    if dtype.kind == "i":       # the bindings give elements of the type index without a sign
        words = [int(attr[i]) % (1 << 8 * dtype.itemsize) for i in range(len(attr))]
        return np.array(words, f"u{dtype.itemsize}").view(dtype).reshape(1, *shape)
    if dtype.kind == "V" or dtype.name not in ("float64", "float32", "float16"):
        return np.array([attr[i] for i in range(len(attr))]).astype(dtype).reshape(1, *shape)
    return np.array(attr).astype(dtype).reshape(1, *shape)


def _scalar(attr: Attribute) -> float:
    return attr.value

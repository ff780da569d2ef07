"""Tensor types as plain data: a shape of symbolic dims and an element type name.

Inference works on :class:`TensorType`, so that it needs no MLIR context. Element type names are MLIR's own:
``f32``, ``bf16``, ``i1`` (bool), ``i64``, ``ui8``, ``f8E4M3FN``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from xcc._mlir import Type, ir
from xcc.dialects.xt.base import KNOWN_TYPES, element_type_of, shape_of, tensor_type
from xcc.symbolic import Dim, is_static

NUMPY_DTYPES: dict[str, Any] = {
    "f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn), "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz), "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu), "f4E2M1FN": np.dtype(ml_dtypes.float4_e2m1fn),
    "i1": np.dtype(np.bool_),
    "i2": np.dtype(ml_dtypes.int2), "ui2": np.dtype(ml_dtypes.uint2),
    "i4": np.dtype(ml_dtypes.int4), "ui4": np.dtype(ml_dtypes.uint4),
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8), "ui16": np.dtype(np.uint16), "ui32": np.dtype(np.uint32), "ui64": np.dtype(np.uint64),
}
_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


def numpy_dtype(name: str) -> Any:
    """The numpy dtype (of ml_dtypes where numpy has none) of the element type `name`."""
    return NUMPY_DTYPES[name]


def dtype_name(dtype: Any) -> str:
    """The element type's name, from a name, an MLIR type or a numpy dtype; ValueError for anything else."""
    name = str(dtype) if isinstance(dtype, (str, ir.Type)) else _NAMES.get(np.dtype(dtype))
    if name not in NUMPY_DTYPES:
        raise ValueError(f"'{dtype}' is not an element type; known are {', '.join(NUMPY_DTYPES)}")
    return name


def is_float(name: str) -> bool:
    return name.startswith(("f", "bf"))


def is_integer(name: str) -> bool:
    """True for signed and unsigned integers; i1 is a bool and no integer."""
    return not is_float(name) and name != "i1"


def is_signed(name: str) -> bool:
    return is_float(name) or (name.startswith("i") and name != "i1")


def width(name: str) -> int:
    """Bits of an element of the type `name`; 1 for i1."""
    digits = name.lstrip("bfui")
    return int(digits.split("E")[0]) if digits else 0


@dataclass(frozen=True)
class TensorType:
    """A tensor's shape and element type; `str` gives ``f32[batch, 3]``."""

    shape: tuple[Dim, ...]
    dtype: str

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static(self) -> bool:
        return is_static(self.shape)

    def with_shape(self, shape: Sequence[Dim]) -> "TensorType":
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: str) -> "TensorType":
        return TensorType(self.shape, dtype)

    def mlir(self) -> Type:
        """The MLIR type, in the current context."""
        return tensor_type(self.shape, ir.Type.parse(self.dtype))

    @staticmethod
    def of(value_or_type: Any) -> "TensorType":
        """The type of an MLIR value or of an MLIR ranked tensor type."""
        return _known(value_or_type if isinstance(value_or_type, ir.Type) else value_or_type.type)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(d) for d in self.shape)}]"


@lru_cache(KNOWN_TYPES)
def _known(kind: Type) -> TensorType:
    return TensorType(shape_of(kind), str(element_type_of(kind)))

"""Element types: what linalg sees of an xt element type, accumulators, scalar constants, neutral values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc._mlir import Attribute, Type, Value, arith_d, ir
from xcc.dialects.xt.types import numpy_dtype
from xcc.symbolic import Dim

CODED_FLOATS = ("f4E2M1FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E8M0FNU")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def is_float(t: Type) -> bool:
    return isinstance(t, ir.FloatType)


def is_unsigned(t: Type) -> bool:
    """Unsigned integers, and bool: both extend with zeros."""
    return isinstance(t, ir.IntegerType) and (t.is_unsigned or t.width == 1)


def is_bool(t: Type) -> bool:
    return isinstance(t, ir.IntegerType) and t.width == 1


def width(t: Type) -> int:
    return int(t.width)


def is_coded(t: Type) -> bool:
    """Types that no machine computes with: memory holds the code of an element in a byte."""
    return t.width in (2, 4) if isinstance(t, ir.IntegerType) else str(t) in CODED_FLOATS


def computed(t: Type) -> Type:
    """The type in which values of `t` are computed: itself but for coded types."""
    if not is_coded(t):
        return t
    return ir.F32Type.get() if is_float(t) else ir.IntegerType.get_unsigned(8) if is_unsigned(t) \
        else ir.IntegerType.get_signless(8)


def stored(t: Type) -> Type:
    """The type of an element from stage linalg on: ui8 -> i8, the codes of coded types are i8."""
    if is_coded(t):
        return ir.IntegerType.get_signless(8)
    return ir.IntegerType.get_signless(t.width) if isinstance(t, ir.IntegerType) else t


def accumulator(t: Type) -> Type:
    """The type in which sums of `t` are kept: f32 for the narrow floats, else `t`."""
    return ir.F32Type.get() if is_float(t) and t.width < 32 else computed(t)


def tensor_of(dims: Sequence[Dim], element: Type) -> Type:
    """The linalg tensor type: symbolic dims are `?`, no encoding, stored integers."""
    return ir.RankedTensorType.get([d if isinstance(d, int) else _DYNAMIC for d in dims], stored(element))


def constant(t: Type, value: float | int) -> Value:
    """An arith.constant of scalar type `t`; integers wrap to its width."""
    if is_coded(t):
        value = code_of(t, value)
    t = stored(t)
    if is_float(t):
        return arith_d.ConstantOp(t, ir.FloatAttr.get(t, float(value))).result
    bits = int(value) & ((1 << t.width) - 1)
    if t.width == 1:
        return arith_d.ConstantOp(t, ir.IntegerAttr.get(t, bits)).result
    return arith_d.ConstantOp(t, ir.IntegerAttr.get(t, bits - (1 << t.width) if bits >> (t.width - 1) else bits)).result


def code_of(t: Any, value: float | int) -> int:
    """The code of `value` in the coded type `t`."""
    if not is_float(t):
        return int(value) & ((1 << t.width) - 1)
    return int(np.array(value, np.float32).astype(numpy_dtype(str(t))).view(np.uint8))


def to_i32(index: Value) -> Value:
    return arith_d.index_cast(ir.IntegerType.get_signless(32), index)


def to_index(value: Value) -> Value:
    return arith_d.index_cast(ir.IndexType.get(), value)


def transfer_attributes(*segments: int) -> dict[str, Attribute]:
    """Of a vector.transfer of the last two dims of memory, in bounds."""
    return {"in_bounds": ir.Attribute.parse("[true, true]"),
            "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get_minor_identity(max(segments), 2)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments))}


def index_constant(value: int) -> Value:
    return arith_d.constant(ir.IndexType.get(), value)


_LARGEST = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0,
            "bf16": 3.3895313892515355e38, "f8E4M3FN": 448.0, "f8E5M2": 57344.0,
            "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f8E8M0FNU": 2.0**127, "f4E2M1FN": 6.0}


def limits(t: Type, finite: bool = False) -> tuple[float | int, float | int]:
    """The least and greatest value of `t`; infinities where it has them unless `finite`."""
    if is_float(t):
        top = _LARGEST[str(t)] if finite or str(t) == "f8E4M3FN" else math.inf
        return -top, top
    if is_unsigned(t):
        return 0, (1 << t.width) - 1
    return -(1 << (t.width - 1)), (1 << (t.width - 1)) - 1

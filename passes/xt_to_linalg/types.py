"""Element types: what linalg sees of an xt element type, accumulators, scalar constants, neutral values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xcc._mlir import arith_d, ir
from xcc.symbolic import Dim

__all__ = ["accumulator", "constant", "index_constant", "is_bool", "is_float", "is_unsigned", "limits", "signless",
           "tensor_of", "width"]

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def is_float(t: Any) -> bool:
    return isinstance(t, ir.FloatType)


def is_unsigned(t: Any) -> bool:
    """Unsigned integers, and bool: both extend with zeros."""
    return isinstance(t, ir.IntegerType) and (t.is_unsigned or t.width == 1)


def is_bool(t: Any) -> bool:
    return isinstance(t, ir.IntegerType) and t.width == 1


def width(t: Any) -> int:
    return int(t.width)


def signless(t: Any) -> Any:
    """ui8 -> i8; other types as they are."""
    return ir.IntegerType.get_signless(t.width) if isinstance(t, ir.IntegerType) else t


def accumulator(t: Any) -> Any:
    """The type in which sums of `t` are kept: f32 for the narrow floats, else `t`."""
    return ir.F32Type.get() if is_float(t) and t.width < 32 else t


def tensor_of(dims: Sequence[Dim], element: Any) -> Any:
    """The linalg tensor type: symbolic dims are `?`, no encoding, signless integers."""
    return ir.RankedTensorType.get([d if isinstance(d, int) else _DYNAMIC for d in dims], signless(element))


def constant(t: Any, value: float | int) -> Any:
    """An arith.constant of scalar type `t`; integers wrap to its width."""
    t = signless(t)
    if is_float(t):
        return arith_d.ConstantOp(t, ir.FloatAttr.get(t, float(value))).result
    bits = int(value) & ((1 << t.width) - 1)
    if t.width == 1:
        return arith_d.ConstantOp(t, ir.IntegerAttr.get(t, bits)).result
    return arith_d.ConstantOp(t, ir.IntegerAttr.get(t, bits - (1 << t.width) if bits >> (t.width - 1) else bits)).result


def index_constant(value: int) -> Any:
    return arith_d.constant(ir.IndexType.get(), value)


_LARGEST = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0,
            "bf16": 3.3895313892515355e38, "f8E4M3FN": 448.0, "f8E5M2": 57344.0}


def limits(t: Any, finite: bool = False) -> tuple[float | int, float | int]:
    """The least and greatest value of `t`; infinities where it has them unless `finite`."""
    if is_float(t):
        top = _LARGEST[str(t)] if finite or str(t) == "f8E4M3FN" else math.inf
        return -top, top
    if is_unsigned(t):
        return 0, (1 << t.width) - 1
    return -(1 << (t.width - 1)), (1 << (t.width - 1)) - 1

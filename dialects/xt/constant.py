"""Values that come from no operand: constants, weights, and host scalars made of symbols."""

from typing import Any

import numpy as np

from xcc._mlir import Operation, Value
from xcc.dialects.xt.fields import dense, dims, text
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import BUILDERS, Attrs, InferError, XtOp, build
from xcc.dialects.xt.types import TensorType, dtype_name, numpy_dtype
from xcc.symbolic import Dim


class Constant(XtOp, name="constant"):
    """A small array in the IR text; big ones are weights. The type is the array's."""

    value = dense()
    access = "source"

    def infer(a: Attrs) -> TensorType:
        value = np.asarray(a.value)
        return TensorType(tuple(value.shape), dtype_name(value.dtype))

    def evaluate(a: Attrs) -> Array:
        return np.asarray(a.value)


class Weight(XtOp, name="weight"):
    """The array called `name` in the weight store beside the module; its type is declared and static."""

    name = text()
    access = "source"

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        return None if TensorType.of(op.operation.results[0]).static else "has a symbolic dim"


class DimValue(XtOp, name="dim"):
    """The value of a dim expression of the symbols, as an i64 scalar. It is host arithmetic, no tensor is read."""

    value = dims()
    access = "scalar"

    def infer(a: Attrs) -> TensorType:
        if len(a.value) != 1:
            raise InferError(f"value holds one expression, not {len(a.value)}")
        return TensorType((), "i64")


def constant(value: float | Array, dtype: str | None = None) -> Value:
    """xt.constant of an array or a Python scalar; `dtype` (name, MLIR type or numpy dtype) converts it."""
    with np.errstate(over="ignore"):        # infinite in a narrower type
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(numpy_dtype(dtype_name(dtype)))
    return build(Constant, value=array)


def weight(name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | str) -> Value:
    """xt.weight of an entry of the weight store, with its shape and element type."""
    return build(Weight, result_types=TensorType(tuple(shape), dtype_name(dtype)), name=name)


def dim(value: Dim) -> Value:
    """xt.dim: the i64 scalar with the value of a dim expression."""
    return build(DimValue, value=(value,))


BUILDERS.update(constant=constant, weight=weight, dim=dim)

"""Quantisation: integers or narrow floats with a scale and a zero point, by tensor, by axis or by block."""


import numpy as np

from xcc.dialects.xt.broadcasting import shape_text
from xcc.dialects.xt.fields import boolean, dtype, integer, operand, optional
from xcc.dialects.xt.numeric import Array, cast, integer_limits
from xcc.dialects.xt.op import Attrs, InferError, XtOp, axis_of, same_dims
from xcc.dialects.xt.types import TensorType, dtype_name, is_float, numpy_dtype, width
from xcc.symbolic import ceildiv


def _check_scale(a: Attrs, x: TensorType, scale: TensorType, zero_point: TensorType | None) -> None:
    if not is_float(scale.dtype):
        raise InferError(f"the scale is {scale.dtype}, not a float")
    if zero_point is not None and zero_point.shape != scale.shape:
        raise InferError(f"scale {shape_text(scale.shape)} and zero point {shape_text(zero_point.shape)} differ")
    if scale.rank == 0:
        return
    axis = axis_of(a.axis, x.rank)
    if a.block:
        want = tuple(ceildiv(n, a.block) if d == axis else n for d, n in enumerate(x.shape))
    else:
        want = (x.shape[axis],)
    if len(want) != scale.rank or not all(map(same_dims, want, scale.shape)):
        raise InferError(f"the scale is {shape_text(scale.shape)}, not {shape_text(want)}")


def spread(a: Attrs, value: Array, x: Array) -> Array:
    """Scale or zero point with a shape that broadcasts to x."""
    if value is None or value.ndim == 0:
        return value
    if a.block:
        return np.repeat(value, a.block, a.axis)[tuple(slice(0, n) for n in x.shape)]
    return value.reshape([-1 if d == a.axis else 1 for d in range(x.ndim)])


class _Scaled(Attrs):
    """What is scaled: by one number, by a vector along `axis`, or with `block` by one for so many along `axis`."""

    x = operand()
    scale = operand()
    zero_point = optional()
    axis = integer(1)
    block = integer(0)
    access = "pointwise"

    def normalize(a: Attrs, x: TensorType, scale: TensorType, zero_point: TensorType | None) -> None:
        a.axis = axis_of(a.axis, x.rank) if scale.rank else 0


class Quantize(_Scaled, XtOp, name="quantize"):
    """saturate(round(x / scale) + zero_point) as `dtype`; halves to even. For a float `dtype` saturate(x / scale).

    The scale is a scalar, a vector along `axis`, or with `block` of x's shape with ceil(n / block) at `axis`. With
    `reciprocal` x * (1 / scale), the quotient rounded to f32, as PyTorch has it.
    """

    dtype = dtype()
    saturate = boolean(True)
    reciprocal = boolean(False)

    def infer(a: Attrs, x: TensorType, scale: TensorType, zero_point: TensorType | None) -> TensorType:
        _check_scale(a, x, scale, zero_point)
        if zero_point is not None and zero_point.dtype != a.dtype:
            raise InferError(f"the zero point is {zero_point.dtype}, not {a.dtype}")
        return x.with_dtype(a.dtype)

    def evaluate(a: Attrs, x: Array, scale: Array, zero_point: Array | None) -> Array:
        with np.errstate(all="ignore"):
            step = spread(a, scale, x)
            y = x.astype(np.float32)
            y = np.asarray(y * (1 / step).astype(np.float32) if a.reciprocal else y / step.astype(np.float32))
            if is_float(a.dtype):
                y = y if zero_point is None else y + spread(a, zero_point, x).astype(np.float32)
                return cast(np.asarray(y, np.float32), a.dtype, a.saturate)
            y = np.rint(y)
            y = y if zero_point is None else y + spread(a, zero_point, x).astype(np.float32)
            return np.clip(np.nan_to_num(y), *integer_limits(a.dtype)).astype(np.int64).astype(numpy_dtype(a.dtype))


class Requantize(XtOp, name="requantize"):
    """saturate(round(x) + zero_point) as `dtype`, an integer of at most 16 bits; halves to even. x is f32, no NaN."""

    x = operand()
    zero_point = integer(0)
    dtype = dtype()
    access = "pointwise"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if x.dtype != "f32":
            raise InferError(f"takes f32, not {x.dtype}")
        if is_float(a.dtype) or width(a.dtype) > 16:
            raise InferError(f"makes integers of at most 16 bits, not {a.dtype}")
        return x.with_dtype(a.dtype)

    def evaluate(a: Attrs, x: Array) -> Array:
        y = np.rint(x) + np.float32(a.zero_point)
        return np.clip(y, *integer_limits(a.dtype)).astype(np.int64).astype(numpy_dtype(a.dtype))


class RoundClamp(XtOp, name="round_clamp"):
    """round(x) moved into [low, high], halves to even: the numbers between requantize and dequantize. x is no NaN."""

    x = operand()
    low = integer()
    high = integer()
    access = "pointwise"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if x.dtype != "f32":
            raise InferError(f"takes f32, not {x.dtype}")
        return x

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.clip(np.rint(x), np.float32(a.low), np.float32(a.high))


class Dequantize(_Scaled, XtOp, name="dequantize"):
    """(x - zero_point) * scale as `dtype` (default the scale's); scale as in quantize."""

    dtype = dtype(None)

    def normalize(a: Attrs, x: TensorType, scale: TensorType, zero_point: TensorType | None) -> None:
        _Scaled.normalize(a, x, scale, zero_point)
        a.dtype = a.dtype or scale.dtype

    def infer(a: Attrs, x: TensorType, scale: TensorType, zero_point: TensorType | None) -> TensorType:
        _check_scale(a, x, scale, zero_point)
        if zero_point is not None and zero_point.dtype != x.dtype:
            raise InferError(f"the zero point is {zero_point.dtype}, not {x.dtype}")
        return x.with_dtype(a.dtype)

    def evaluate(a: Attrs, x: Array, scale: Array, zero_point: Array | None) -> Array:
        if is_float(dtype_name(x.dtype)):
            y = x.astype(np.float32)
            y = y if zero_point is None else y - spread(a, zero_point, x).astype(np.float32)
        else:
            y = x.astype(np.int64)
            y = (y if zero_point is None else y - spread(a, zero_point, x).astype(np.int64)).astype(np.float32)
        return np.asarray(y * spread(a, scale, x).astype(np.float32)).astype(numpy_dtype(a.dtype))


class DynamicQuantize(XtOp, name="dynamic_quantize"):
    """x (f32) as ui8 with a scale and zero point from its own range, which includes 0: (y, scale, zero_point).

    The range of zeros alone counts as 1, as in ONNX's reference.
    """

    x = operand()
    access = "composite"
    result_names = ("result", "scale", "zero_point")

    def infer(a: Attrs, x: TensorType) -> tuple[TensorType, TensorType, TensorType]:
        if x.dtype != "f32":
            raise InferError(f"takes f32, not {x.dtype}")
        return x.with_dtype("ui8"), TensorType((), "f32"), TensorType((), "ui8")

    def evaluate(a: Attrs, x: Array) -> tuple[Array, ...]:
        low = np.minimum(x.min(initial=0), np.float32(0))
        high = np.maximum(x.max(initial=0), np.float32(0))
        scale = np.float32(high - low) / np.float32(255)
        scale = scale if scale != 0 else np.float32(1) / np.float32(255)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        y = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
        return y, np.asarray(scale, np.float32), np.asarray(zero, np.uint8)

"""quantize, dequantize and dynamic_quantize."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import integer_limits
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import column, const, convert, shape


def _spread(a: Attrs, value: Value, x: Value) -> Value:
    """Scale or zero point with a shape that broadcasts to x."""
    dims = shape(value)
    if not dims:
        return value
    if not a.block:
        return column(value, a.axis, len(shape(x)))
    return xt.stretch(value, axis=a.axis, times=a.block, size=(shape(x)[a.axis],))


@decomposes("quantize")
def quantize(a: Attrs, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """clamp(round(x / scale) + zero_point) in f32, then the conversion."""
    if a.reciprocal:
        inverse = convert(xt.div(const(1.0, scale), scale), "f32")
        y = xt.mul(convert(x, "f32"), _spread(a, inverse, x))
    else:
        y = xt.div(convert(x, "f32"), convert(_spread(a, scale, x), "f32"))
    whole = not xt.is_float(a.dtype)
    y = xt.round_(y) if whole else y
    if zero_point is not None:
        y = xt.add(y, convert(_spread(a, zero_point, x), "f32"))
    if whole:
        low, high = integer_limits(a.dtype)
        if high < 2**24:
            y = xt.minimum(xt.maximum(y, const(low, y)), const(high, y))
    return xt.convert(y, dtype=a.dtype, saturate=a.saturate)


@decomposes("dequantize")
def dequantize(a: Attrs, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """(x - zero_point) * scale, the difference in i32 for integers."""
    middle = "f32" if xt.is_float(xt.TensorType.of(x).dtype) else "i32"
    y = convert(x, middle)
    if zero_point is not None:
        y = xt.sub(y, convert(_spread(a, zero_point, x), middle))
    return convert(xt.mul(convert(y, "f32"), convert(_spread(a, scale, x), "f32")), a.dtype)


@decomposes("dynamic_quantize")
def dynamic_quantize(a: Attrs, x: Value) -> tuple[Value, Value, Value]:
    """The range of x with 0, its scale and zero point, then quantize."""
    zero, full = const(0.0, x), const(255.0, x)
    low = xt.minimum(xt.reduce(x, kind="min"), zero)
    high = xt.maximum(xt.reduce(x, kind="max"), zero)
    scale = xt.div(xt.sub(high, low), full)
    scale = xt.select(xt.compare(scale, zero, direction="eq"), const(np.float32(1) / np.float32(255), x), scale)
    point = xt.minimum(xt.maximum(xt.round_(xt.div(xt.neg(low), scale)), zero), full)
    point = xt.convert(point, dtype="ui8")
    return xt.quantize(x, scale, point, dtype="ui8"), scale, point

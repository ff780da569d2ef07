"""Ops of namespace ``quantized_decomposed`` that quantise by tensor or by channel, as xt's own, which products of bytes
are found by. Other ones are decomposed (:mod:`decomposed_quantization`)."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import integer_limits
from xcc.frontends.shared.helpers import convert, element, rank_of, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten

QUANTIZED = "quantized_decomposed"


@aten("quantize_per_tensor.default", "quantize_per_tensor.tensor", "quantize_per_channel.default", namespace=QUANTIZED)
def quantize(cx: Context) -> Value:
    """clamp(round(input * (1 / scale)) + zero_point, quant_min, quant_max)."""
    kind = cx.out().dtype
    x, (scale, zero, axis) = cx.tensor("input"), _parameters(cx, kind)
    y = xt.quantize(x, scale, zero, axis=axis, dtype=kind, reciprocal=True)
    low, high = int(cx.number("quant_min")), int(cx.number("quant_max"))
    least, most = integer_limits(kind)
    y = xt.maximum(y, scalar(low, y)) if low > least else y
    return xt.minimum(y, scalar(high, y)) if high < most else y


@aten("dequantize_per_tensor.default", "dequantize_per_tensor.tensor", "dequantize_per_channel.default",
      namespace=QUANTIZED)
def dequantize(cx: Context) -> Value:
    """(input - zero_point) * scale."""
    x = cx.tensor("input")
    scale, zero, axis = _parameters(cx, element(x))
    return convert(xt.dequantize(x, convert(scale, "f32"), zero, axis=axis), cx.out().dtype)


def _parameters(cx: Context, kind: str) -> tuple[Value, Value | None, int]:
    """Scale, zero point in the type of the integers, and the dim that they lie along."""
    by_channel = "axis" in cx.args
    scale, zero = (_parameter(cx, name + "s" * by_channel, by_channel) for name in ("scale", "zero_point"))
    assert scale is not None
    return scale, None if zero is None else convert(zero, kind), cx.axis("axis", cx.rank("input")) if by_channel else 0


def _parameter(cx: Context, name: str, by_channel: bool) -> Value | None:
    """A vector, or a scalar: a number that f32 has not is of f64."""
    given = cx.args.get(name)
    if given is None:
        return None
    value = cx.value_of(given, "f64") if isinstance(given, float) and np.float32(given) != given else cx.value_of(given)
    return value if by_channel or not rank_of(value) else xt.reshape(value, shape=())

"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import dtype_name
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.element_types import bits, from_onnx, is_floating
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, scalar


@onnx_op("Cast")
def cast(cx: Context) -> Value:
    """output = Cast(input, to, saturate)."""
    return _cast(cx, cx[0], from_onnx(cx.attr("to")))


@onnx_op("CastLike")
def cast_like(cx: Context) -> Value:
    return _cast(cx, cx[0], cx.dtype(1))


def _cast(cx: Context, x: Value, target: np.dtype[Any]) -> Value:
    float8 = is_floating(target) and target.itemsize == 1
    if dtype_name(target) == "f8E8M0FNU":
        return _to_power_of_two(convert(x, "f32"), cx.attr("round_mode", "up"), bool(cx.attr("saturate", 1)))
    if float8 and cx.attr("saturate", 1):
        return xt.convert(x, dtype=target, saturate=True)
    if bits(target) in (2, 4) and is_floating(cx.dtype(0)):  # wraps, where a direct conversion clamps
        return xt.convert(convert(x, "i32"), dtype=target)
    return convert(x, target)


def _to_power_of_two(x: Value, mode: str, saturate: bool) -> Value:
    """f32 to f8E8M0FNU, which is an exponent alone: the bits of x rounded up, down or to nearest. Its NaN stands for
    infinity too."""
    word = xt.bitcast(xt.abs(x), dtype="ui32")
    step = scalar({"up": (1 << 23) - 1, "down": 0, "nearest": 1 << 22}[mode], word)
    if mode == "nearest":       # 2**-127 is a number of the type, whose bits in f32 look half way
        subnormal = xt.compare(word, scalar(1 << 23, word), direction="lt")
        step = xt.select(subnormal, scalar((1 << 22) - 1, word), step)
    exponent = xt.shift_right(xt.add(word, step), scalar(23, word))
    if saturate:
        exponent = xt.minimum(exponent, scalar(254, exponent))
    exponent = xt.select(xt.is_finite(x), exponent, scalar(255, exponent))
    return xt.bitcast(convert(exponent, "ui8"), dtype="f8E8M0FNU")


@onnx_op("BitCast")
def bit_cast(cx: Context) -> Value:
    target = from_onnx(cx.attr("to"))
    if element(cx[0]) == "i1":
        return xt.bitcast(convert(cx[0], "ui8"), dtype=target)
    if target == np.bool_:
        return convert(xt.bitcast(cx[0], dtype="ui8"), "i1")
    if bits(target) != bits(cx.dtype(0)):
        cx.misfit(f"{dtype_name(target)} has another width than {element(cx[0])}")
    return xt.bitcast(cx[0], dtype=target)

"""Padding and cropping."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Shape, Tensor
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.slicing import at_least
from xcc.frontends.shared.helpers import element, full
from xcc.symbolic import Dim


@onnx_op("Pad")
def pad_attributes(cx: Context) -> Value:
    return _pad(cx, tuple(cx.attr("pads")), cx.attr("value", 0.0), range(cx.rank(0)))


@onnx_op("Pad", since=11)
@onnx_op("Pad", domain="com.microsoft")
def pad_operands(cx: Context) -> Value:
    """output = Pad(data, pads, constant_value?, axes?; mode)."""
    axes = cx.static_ints(3) if cx.has(3) else tuple(range(cx.rank(0)))
    value = 0
    if cx.has(2) and cx.attr("mode", "constant") == "constant":
        if cx.tensor(2).const is None:
            return _pad_with_value(cx, cx.dims(1), axes)
        value = cx.const(2).reshape(-1)[0] if cx.const(2).size else 0
    return _pad(cx, cx.dims(1), value, axes)


def _sides(cx: Context, pads: Shape, axes: Any) -> tuple[Shape, Shape]:
    low: list[Dim] = [0] * cx.rank(0)
    high: list[Dim] = [0] * cx.rank(0)
    axes = [cx.normal_axis(a) for a in axes]
    if len(pads) != 2 * len(axes):
        cx.misfit(f"{len(pads)} pads for {len(axes)} axes")
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    return tuple(low), tuple(high)


def _pad(cx: Context, pads: Shape, value: Any, axes: Any) -> Any:
    low, high = _sides(cx, pads, axes)
    mode = cx.attr("mode", "constant")
    if all(d == 0 for d in (*low, *high)):
        return cx.tensor(0)
    if mode != "constant" and any(cx.graph.model.values.may_be(d, -inf, -1) for d in (*low, *high)):
        cx.fail(f"pads of mode '{mode}' that are values of an input must not be negative: bound them from 0 on (--dim)")
    if mode != "constant" and any(isinstance(d, int) and d < 0 for d in (*low, *high)):
        cropped = xt.slice(cx[0], starts=tuple(_crop(d) for d in low),
                           limits=tuple(n - _crop(d) for n, d in zip(cx.shape(0), high, strict=True)))
        return xt.pad(cropped, low=tuple(_grow(d) for d in low), high=tuple(_grow(d) for d in high), mode=mode)
    if isinstance(value, np.generic | float | int) and abs(float(value)) > 2**53:
        return _pad_select(cx, low, high, xt.scalar(value, element(cx[0])))
    return xt.pad(cx[0], low=low, high=high, mode=mode, value=float(value))


def _crop(d: Dim) -> Dim:
    return -d if isinstance(d, int) and d < 0 else 0


def _grow(d: Dim) -> Dim:
    return 0 if isinstance(d, int) and d < 0 else d


def _pad_with_value(cx: Context, pads: Shape, axes: Any) -> Value:
    low, high = _sides(cx, pads, axes)
    return _pad_select(cx, low, high, xt.reshape(cx[2], shape=()))


def _pad_select(cx: Context, low: Shape, high: Shape, value: Value) -> Value:
    """Padding with a value that an attribute cannot hold: a padded mask selects it."""
    inside = xt.pad(full(cx.shape(0), True, "i1"), low=low, high=high, mode="constant", value=0.0)
    return xt.select(inside, xt.pad(cx[0], low=low, high=high, mode="constant", value=0.0), value)


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(cx: Context) -> Any:
    """Crops or pads with zeros around the centre to `shape` (of `axes`)."""
    axes = [cx.normal_axis(a) for a in cx.attr("axes", range(cx.rank(0)))]
    x = cx[0]
    for axis, wanted in zip(axes, _cropped_shape(cx, axes), strict=True):
        x = _center(cx, x, axis, wanted)
    return Tensor.of_value(x)


def _cropped_shape(cx: Context, axes: list[int]) -> Shape:
    declared = cx.declared()
    if cx.tensor(1).data is None and declared is not None:
        return tuple(declared[a] for a in axes)
    return cx.dims(1)


def _center(cx: Context, x: Value, axis: int, wanted: Dim) -> Value:
    """Padded, then cropped; where bounds of symbols do not tell which of the two it is, one adds or drops nothing."""
    shape = list(xt.shape_of(x))
    low: list[Dim] = [0] * len(shape)
    high: list[Dim] = [0] * len(shape)
    more, less = at_least(cx, wanted - shape[axis], 0), at_least(cx, shape[axis] - wanted, 0)
    if more != 0:
        low[axis] = symbolic.floordiv(more, 2)
        high[axis] = more - low[axis]
        x = xt.pad(x, low=tuple(low), high=tuple(high))
    if less == 0:
        return x
    starts: list[Dim] = [0] * len(shape)
    starts[axis] = symbolic.floordiv(less, 2)
    shape[axis] = starts[axis] + wanted
    return xt.slice(x, starts=tuple(starts), limits=tuple(shape))

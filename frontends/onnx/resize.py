"""Resizing and sampling of images."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.resize import symbolic_form
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.onnx.movement import with_last
from xcc.frontends.onnx.ratio import Ratio
from xcc.frontends.onnx.registry import onnx_op
from xcc.symbolic import Dim


def _scaled(cx: Context, size: Dim, scale: Any) -> Dim:
    """floor(size * scale) for a size that may be symbolic."""
    if isinstance(scale, Ratio):
        cx.fail("scales that depend on symbols are not supported; give sizes")
    if isinstance(size, int):
        return int(np.floor(np.float32(size) * np.float32(scale)))      # 10 * 0.7 are 7, as in onnxruntime and torch
    exact = Fraction(float(scale)).limit_denominator(1 << 12)
    return symbolic.floordiv(size * exact.numerator, exact.denominator)


@onnx_op("Upsample")
def upsample_attribute(cx: Context) -> Value:
    return _upsample(cx, cx.attr("scales"))


@onnx_op("Upsample", since=9)
def upsample_operand(cx: Context) -> Value:
    return _upsample(cx, cx.const(1).tolist())


@onnx_op("Resize", since=10)
def resize_by_scales(cx: Context) -> Value:
    """Opset 10: Y = Resize(X, scales), coordinates asymmetric."""
    return _upsample(cx, cx.const(1).tolist())


def _upsample(cx: Context, scales: list[float]) -> Value:
    mode = cx.attr("mode", "nearest")
    shape = tuple(_scaled(cx, n, s) for n, s in zip(cx.shape(0), scales, strict=True))
    return xt.resize_(cx[0], shape=shape, mode="linear" if mode == "bilinear" else mode, coordinate="asymmetric",
                     nearest_mode="floor", scales=tuple(float(s) for s in scales))


@onnx_op("Resize", since=11)
def resize(cx: Context) -> Any:
    """Y = Resize(X, roi?, scales?, sizes?)."""
    rank = cx.rank(0)
    axes = [cx.normal_axis(a) for a in cx.attr("axes", range(rank))]
    shape, scales = _target(cx, axes)
    mode, coordinate = cx.attr("mode", "nearest"), cx.attr("coordinate_transformation_mode", "half_pixel")
    extra: dict[str, Any] = {}
    if coordinate == "tf_crop_and_resize":
        extra = {"roi": _roi(cx, axes), "extrapolation": cx.attr("extrapolation_value", 0.0)}
    y = xt.resize_(cx[0], shape=shape, mode=mode, coordinate=coordinate,
                  nearest_mode=cx.attr("nearest_mode", "round_prefer_floor"),
                  cubic_coeff=cx.attr("cubic_coeff_a", -0.75), exclude_outside=bool(cx.attr("exclude_outside", 0)),
                  antialias=bool(cx.attr("antialias", 0)), scales=scales, **extra)
    for axis in range(rank):
        pair = (cx.shape(0)[axis], shape[axis])
        if not symbolic.is_static(pair) and pair[0] != pair[1] and not symbolic_form(xt.attrs_of(owner_op(y))):
            cx.fail(f"dim {axis} of {pair[0]} elements, resized to {pair[1]}: where sizes are known at run time only, "
                    "there is no crop; fix the dim (--dim)")
    return y


def _target(cx: Context, axes: list[int]) -> tuple[Shape, tuple[float, ...] | None]:
    """The result's shape, and the scales where they were given as numbers."""
    shape = list(cx.shape(0))
    if cx.has(3) and cx.shape(3) != (0,):
        return _by_sizes(cx, axes, shape), None
    if not cx.has(2):
        cx.fail("neither scales nor sizes are given")
    data = cx.tensor(2).data
    if data is None:
        data = cx.const(2)
    if data.dtype == object:
        return tuple(_symbolic_scale(cx, n, s) for n, s in zip(shape, data.reshape(-1), strict=True)), None
    scales = [1.0] * len(shape)
    for axis, scale in zip(axes, data.reshape(-1).tolist(), strict=True):
        scales[axis] = scale
        shape[axis] = _scaled(cx, shape[axis], scale)
    return tuple(shape), tuple(scales)


def _symbolic_scale(cx: Context, n: Dim, scale: Value) -> Dim:
    if isinstance(scale, Ratio):
        return symbolic.floordiv(scale.top * n, scale.bottom)
    return _scaled(cx, n, scale) if not isinstance(scale, symbolic.Expr) else n * scale


def _by_sizes(cx: Context, axes: list[int], shape: list[Dim]) -> Shape:
    declared = cx.declared()
    if cx.tensor(3).data is None and declared is not None:
        return declared
    sizes = cx.dims(3)
    policy = cx.attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        if not symbolic.is_static((*sizes, *(shape[a] for a in axes))):
            cx.fail(f"keep_aspect_ratio_policy '{policy}' needs static sizes")
        ratios = [int(s) / int(shape[a]) for s, a in zip(sizes, axes, strict=True)]  # type: ignore[arg-type]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = tuple(int(np.floor(ratio * int(shape[a]) + 0.5)) for a in axes)  # type: ignore[arg-type]
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    return tuple(shape)


def _roi(cx: Context, axes: list[int]) -> tuple[float, ...]:
    given = cx.const(1).astype(np.float64).reshape(-1).tolist()
    rank = cx.rank(0)
    low, high = [0.0] * rank, [1.0] * rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = given[i], given[i + len(axes)]
    return (*low, *high)


@onnx_op("GridSample", since=16)
@onnx_op("GridSample", domain="com.microsoft")
def grid_sample(cx: Context) -> Value:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(cx.attr("mode", "linear"), cx.attr("mode", "linear"))
    return xt.grid_sample(cx[0], with_last(cx, 1, cx.rank(0) - 2), mode=mode, padding=cx.attr("padding_mode", "zeros"),
                          align_corners=bool(cx.attr("align_corners", 0)))

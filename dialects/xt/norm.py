"""Normalisations: composites with a schedule of their own on targets that have one. Narrow floats compute in f32."""

import math

import numpy as np

from xcc.dialects.xt.broadcasting import broadcast_shapes, same_dtype, shape_text
from xcc.dialects.xt.elementary import exp, log, power
from xcc.dialects.xt.fields import axes, axis, integer, number, operand, optional
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.types import TensorType, is_float


def check_float(x: TensorType) -> TensorType:
    if not is_float(x.dtype):
        raise InferError(f"takes floats, not {x.dtype}")
    return x


def check_fits(what: str, t: TensorType | None, x: TensorType) -> None:
    """`t` broadcasts to x without changing it."""
    if t is None:
        return
    same_dtype(x, t)
    merged = broadcast_shapes(x.shape, t.shape)
    if len(merged) != x.rank or not all(map(same_dims, merged, x.shape)):
        raise InferError(f"{what} {shape_text(t.shape)} does not broadcast to {shape_text(x.shape)}")


class Softmax(XtOp, name="softmax"):
    """exp(x - max) / sum(exp(x - max)) along `axis`. A row of -inf gives NaN."""

    x = operand()
    axis = axis(-1)
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return check_float(x)

    def evaluate(a: Attrs, x: Array) -> Array:
        def f(v: Array) -> Array:
            e = exp(v - v.max(a.axis, keepdims=True, initial=-np.inf))
            return e / e.sum(a.axis, keepdims=True)

        return in_float(f, x)


class LogSoftmax(XtOp, name="log_softmax"):
    """x - max - log(sum(exp(x - max))) along `axis`."""

    x = operand()
    axis = axis(-1)
    access = "composite"
    infer = Softmax.infer

    def evaluate(a: Attrs, x: Array) -> Array:
        def f(v: Array) -> Array:
            y = v - v.max(a.axis, keepdims=True, initial=-np.inf)
            return y - log(exp(y).sum(a.axis, keepdims=True))

        return in_float(f, x)


class LayerNorm(XtOp, name="layer_norm"):
    """(x - mean) / sqrt(var + eps) * scale + bias; mean and (biased) variance over `axes`.

    `scale` and `bias` broadcast to x.
    """

    x = operand()
    scale = optional()
    bias = optional()
    axes = axes((-1,))
    eps = number(1e-5)
    access = "composite"

    def infer(a: Attrs, x: TensorType, scale: TensorType | None, bias: TensorType | None) -> TensorType:
        check_float(x)
        check_fits("scale", scale, x)
        check_fits("bias", bias, x)
        return x

    def evaluate(a: Attrs, x: Array, scale: Array, bias: Array | None) -> Array:
        def f(v: Array) -> Array:
            y = v - v.mean(a.axes, keepdims=True)
            y = y / np.sqrt((y * y).mean(a.axes, keepdims=True) + a.eps)
            return _scaled(y, scale, bias)

        return in_float(f, x)


def _scaled(y: Array, scale: Array | None, bias: Array | None) -> Array:
    y = y if scale is None else y * scale.astype(y.dtype)
    return y if bias is None else y + bias.astype(y.dtype)


class RmsNorm(XtOp, name="rms_norm"):
    """x / sqrt(mean(x^2) + eps) * scale, the mean over `axes`; scale broadcasts to x."""

    x = operand()
    scale = optional()
    axes = axes((-1,))
    eps = number(1e-5)
    access = "composite"

    def infer(a: Attrs, x: TensorType, scale: TensorType | None) -> TensorType:
        check_float(x)
        check_fits("scale", scale, x)
        return x

    def evaluate(a: Attrs, x: Array, scale: Array) -> Array:
        return in_float(lambda v: _scaled(v / np.sqrt((v * v).mean(a.axes, keepdims=True) + a.eps), scale, None), x)


class GroupNorm(XtOp, name="group_norm"):
    """x [N, C, ...] normalised over each of `groups` groups of channels and all spatial dims; scale, bias [C].

    groups = C is instance normalisation. `axis` is the dim of the channels: 1, or the last one.
    """

    x = operand()
    scale = optional()
    bias = optional()
    groups = integer()
    eps = number(1e-5)
    axis = axis(1)
    access = "composite"

    def infer(a: Attrs, x: TensorType, scale: TensorType | None, bias: TensorType | None) -> TensorType:
        check_float(x)
        if x.rank < 2:
            raise InferError(f"x needs a batch and a channel dim, it has rank {x.rank}")
        if a.axis not in (1, x.rank - 1):
            raise InferError(f"channels are dim 1 or the last one, not {a.axis}")
        channels = x.shape[a.axis]
        if isinstance(channels, int) and channels % a.groups:
            raise InferError(f"{channels} channels do not divide into {a.groups} groups")
        for what, t in (("scale", scale), ("bias", bias)):
            if t is not None and (t.rank != 1 or not same_dims(t.shape[0], channels) or t.dtype != x.dtype):
                raise InferError(f"{what} is {t}, not {x.dtype}[{channels}]")
        return x

    def evaluate(a: Attrs, x: Array, scale: Array, bias: Array | None) -> Array:
        def f(last: Array) -> Array:
            v = np.moveaxis(last, a.axis, 1)
            grouped = v.reshape(v.shape[0], a.groups, math.prod(v.shape[1:]) // a.groups)
            y = grouped - grouped.mean(-1, keepdims=True)
            y = (y / np.sqrt((y * y).mean(-1, keepdims=True) + a.eps)).reshape(v.shape)
            column = (-1,) + (1,) * (v.ndim - 2)
            y = _scaled(y, *(None if t is None else t.reshape(column) for t in (scale, bias)))
            return np.moveaxis(y, 1, a.axis)

        return in_float(f, x)


class Lrn(XtOp, name="lrn"):
    """x / (bias + alpha/size * sum of x^2 over `size` channels around)^beta; x [N, C, ...]."""

    x = operand()
    size = integer()
    alpha = number(1e-4)
    beta = number(0.75)
    bias = number(1.0)
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return check_float(x)

    def evaluate(a: Attrs, x: Array) -> Array:
        def f(v: Array) -> Array:
            low, high = (a.size - 1) // 2, a.size // 2
            padded = np.pad(v * v, [(0, 0), (low, high)] + [(0, 0)] * (v.ndim - 2))
            total = sum(padded[:, i:i + v.shape[1]] for i in range(a.size))
            return v / power(a.bias + a.alpha / a.size * total, v.dtype.type(a.beta))

        return in_float(f, x)

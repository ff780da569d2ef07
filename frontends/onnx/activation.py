"""Activations, clipping and dropout."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Tensor
from xcc.frontends.onnx.element_types import is_unsigned
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.activations import hard_sigmoid, positive_or, softplus
from xcc.frontends.shared.helpers import along, convert, element, relu, scalar


@onnx_op("Clip")
def clip_attributes(cx: Context) -> Value:
    """Y = Clip(X, min, max), bounds as attributes."""
    x = xt.maximum(cx[0], scalar(cx.attr("min"), cx[0])) if cx.attr("min") is not None else cx[0]
    return xt.minimum(x, scalar(cx.attr("max"), x)) if cx.attr("max") is not None else x


@onnx_op("Clip", since=11)
def clip_operands(cx: Context) -> Value:
    """Y = Clip(X, min?, max?)."""
    x = xt.maximum(cx[0], cx[1]) if cx.has(1) else cx[0]
    return xt.minimum(x, cx[2]) if cx.has(2) else x


@onnx_op("Relu")
def relu_(cx: Context) -> Value:
    return relu(cx[0])


@onnx_op("LeakyRelu")
def leaky_relu(cx: Context) -> Value:
    x = cx[0]
    return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, scalar(cx.attr("alpha", 0.01), x)), x)


@onnx_op("PRelu", broadcasts=True)
def parametric_relu(cx: Context) -> Value:
    x, slope = cx[0], cx[1]
    if cx.opset < 7 and cx.rank(1) == 1 and cx.shape(1) != (1,):  # one slope a channel
        slope = along(slope, 1, cx.rank(0))
    return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, slope), x)


@onnx_op("ThresholdedRelu")
def thresholded_relu(cx: Context) -> Value:
    x = cx[0]
    return xt.select(xt.compare(x, scalar(cx.attr("alpha", 1.0), x), direction="gt"), x, scalar(0, x))


@onnx_op("Elu")
def elu(cx: Context) -> Value:
    """x if x > 0 else alpha * (e^x - 1)."""
    x = cx[0]
    return positive_or(x, xt.mul(scalar(cx.attr("alpha", 1.0), x), xt.expm1(x)))


@onnx_op("Celu")
def celu(cx: Context) -> Value:
    """max(0, x) + min(0, alpha * (e^(x/alpha) - 1))."""
    x = cx[0]
    alpha = scalar(cx.attr("alpha", 1.0), x)
    return xt.add(relu(x), xt.minimum(scalar(0, x), xt.mul(alpha, xt.expm1(xt.div(x, alpha)))))


@onnx_op("Selu")
def selu(cx: Context) -> Value:
    """gamma * (x if x > 0 else alpha * (e^x - 1))."""
    x = cx[0]
    inner = positive_or(x, xt.mul(scalar(cx.attr("alpha", 1.67326319217681884765625), x), xt.expm1(x)))
    return xt.mul(scalar(cx.attr("gamma", 1.05070102214813232421875), x), inner)


@onnx_op("HardSigmoid")
def hard_sigmoid_(cx: Context) -> Value:
    """max(0, min(1, alpha * x + beta))."""
    return hard_sigmoid(cx[0], cx.attr("alpha", 0.2), cx.attr("beta", 0.5))


@onnx_op("HardSwish")
def hard_swish(cx: Context) -> Value:
    return xt.mul(cx[0], hard_sigmoid(cx[0], 1 / 6, 0.5))


@onnx_op("Swish")
def swish(cx: Context) -> Value:
    """x * sigmoid(alpha * x)."""
    x, alpha = cx[0], cx.attr("alpha", 1.0)
    return xt.mul(x, xt.sigmoid(x if alpha == 1.0 else xt.mul(x, scalar(alpha, x))))


@onnx_op("Mish")
def mish(cx: Context) -> Value:
    """x * tanh(softplus(x))."""
    return xt.mul(cx[0], xt.tanh(softplus(cx[0])))


@onnx_op("Softplus")
def softplus_(cx: Context) -> Value:
    return softplus(cx[0])


@onnx_op("Softsign")
def softsign(cx: Context) -> Value:
    x = cx[0]
    return xt.div(x, xt.add(scalar(1, x), xt.abs(x)))


@onnx_op("Shrink")
def shrink(cx: Context) -> Value:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    x, bias, limit = cx[0], cx.attr("bias", 0.0), cx.attr("lambd", 0.5)
    if is_unsigned(cx.dtype(0)):
        cx.fail("Shrink of unsigned integers is not supported")
    low = xt.compare(x, scalar(-limit, x), direction="lt")
    high = xt.compare(x, scalar(limit, x), direction="gt")
    inner = xt.select(high, xt.sub(x, scalar(bias, x)), scalar(0, x))
    return xt.select(low, xt.add(x, scalar(bias, x)), inner)


@onnx_op("Gelu", since=20)
@onnx_op("Gelu", "FastGelu", domain="com.microsoft")
def gelu(cx: Context) -> Value:
    """x/2 * (1 + erf(x / sqrt 2)), or its tanh approximation."""
    x = cx[0]
    fast = cx.op == "FastGelu"
    if fast and cx.has(1):
        x = xt.add(x, cx[1])
    return xt.gelu(x, approximate="tanh" if fast else cx.attr("approximate", "none"))


@onnx_op("BiasGelu", domain="com.microsoft")
def bias_gelu(cx: Context) -> Value:
    return xt.gelu(xt.add(cx[0], cx[1]), approximate="none")


@onnx_op("QuickGelu", domain="com.microsoft")
def quick_gelu(cx: Context) -> Value:
    x = cx[0]
    return xt.mul(x, xt.sigmoid(xt.mul(x, scalar(cx.attr("alpha", 1.702), x))))


@onnx_op("Dropout")
def dropout(cx: Context) -> tuple[Tensor | Value, Value | None]:
    """Inference: the identity; the mask is all true."""
    if cx.op == "Dropout" and cx.has(2):
        training = cx.tensor(2).const
        ratio = cx.tensor(1).const if cx.has(1) else np.array(0.5)
        if training is None or (bool(training.reshape(-1)[0]) and (ratio is None or float(ratio.reshape(-1)[0]) > 0)):
            return _dropout_training(cx)
    mask_type = np.bool_ if cx.opset >= 10 else cx.dtype(0)
    mask = xt.broadcast(xt.scalar(1, np.dtype(mask_type)), shape=cx.shape(0)) if cx.wants(1) else None
    return cx.tensor(0), mask


def _dropout_training(cx: Context) -> tuple[Value, Value | None]:
    x = cx[0]
    ratio = convert(cx[1], element(x)) if cx.has(1) else scalar(0.5, x)
    seed = cx.attr("seed")
    noise = xt.random_uniform(shape=cx.shape(0), low=0.0, high=1.0, seed=0 if seed is None else int(seed), dtype="f32")
    mask = xt.compare(noise, convert(ratio, "f32"), direction="ge")
    if cx.has(2):
        mask = xt.or_(mask, xt.not_(cx[2]))
        ratio = xt.select(cx[2], ratio, scalar(0, x))
    kept = xt.div(x, xt.sub(scalar(1, x), ratio))
    return xt.select(mask, kept, scalar(0, x)), mask if cx.wants(1) else None

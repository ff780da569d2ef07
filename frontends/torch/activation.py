"""Activations."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared import activations
from xcc.frontends.shared.helpers import along, rank_of, scalar, slice_axis
from xcc.frontends.shared.helpers import relu as positive
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten


def _above(x: Value, limit: Value) -> Value:
    return xt.compare(x, limit, direction="gt")


@aten("relu")
def relu(cx: Context) -> Value:
    return positive(cx.tensor("self"))


@aten("gelu")
def gelu(cx: Context) -> Value:
    return xt.gelu(cx.tensor("self"), approximate=cx["approximate"])


@aten("silu")
def silu(cx: Context) -> Value:
    x = cx.tensor("self")
    return xt.mul(x, xt.sigmoid(x))


@aten("hardtanh")
def hardtanh(cx: Context) -> Value:
    x = cx.tensor("self")
    low, high = cx.scalar(cx["min_val"], x), cx.scalar(cx["max_val"], x)
    return xt.minimum(xt.maximum(x, low), high)


@aten("leaky_relu")
def leaky_relu(cx: Context) -> Value:
    x = cx.tensor("self")
    return activations.positive_or(x, xt.mul(x, cx.scalar(cx["negative_slope"], x)))


@aten("prelu", "_prelu_kernel")
def prelu(cx: Context) -> Value:
    """x, or weight * x below 0; a weight an entry a channel, or one that fits x."""
    x, weight = cx.tensor("self"), cx.tensor("weight")
    rank = rank_of(x)
    if rank_of(weight) == 1 and cx.node.op == "aten.prelu.default":
        weight = along(weight, 1 if rank > 1 else 0, rank) if rank else xt.reshape(weight, shape=())
    return activations.positive_or(x, xt.mul(weight, x))


@aten("elu")
def elu(cx: Context) -> Value:
    """scale * x, or scale * alpha * (e^(x * input_scale) - 1) where x is not above 0."""
    x = cx.tensor("self")
    alpha, scale, inner = (cx.scalar(cx[n], x) for n in ("alpha", "scale", "input_scale"))
    negative = xt.mul(xt.mul(alpha, scale), xt.expm1(xt.mul(x, inner)))
    return xt.select(_above(x, scalar(0, x)), xt.mul(x, scale), negative)


@aten("selu")
def selu(cx: Context) -> Value:
    x = cx.tensor("self")
    inner = activations.positive_or(x, xt.mul(scalar(1.6732632423543772, x), xt.expm1(x)))
    return xt.mul(scalar(1.0507009873554805, x), inner)


@aten("celu")
def celu(cx: Context) -> Value:
    x = cx.tensor("self")
    alpha = cx.scalar(cx["alpha"], x)
    return activations.positive_or(x, xt.mul(alpha, xt.expm1(xt.div(x, alpha))))


@aten("softplus")
def softplus(cx: Context) -> Value:
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""
    x = cx.tensor("self")
    beta, threshold = cx.scalar(cx["beta"], x), cx.scalar(cx["threshold"], x)
    bent = xt.mul(x, beta)
    return xt.select(_above(bent, threshold), x, xt.div(activations.softplus(bent), beta))


@aten("mish")
def mish(cx: Context) -> Value:
    x = cx.tensor("self")
    return xt.mul(x, xt.tanh(activations.softplus(x)))


@aten("silu_backward")
def silu_backward(cx: Context) -> Value:
    grad, x = cx.tensor("grad_output"), cx.tensor("self")
    share = xt.sigmoid(x)
    return xt.mul(grad, xt.mul(share, xt.add(xt.mul(x, xt.sub(scalar(1, x), share)), scalar(1, x))))


@aten("mish_backward")
def mish_backward(cx: Context) -> Value:
    """Of x * t with t = tanh(softplus(x)): t + x * sigmoid(x) * (1 - t^2)."""
    grad, x = cx.tensor("grad_output"), cx.tensor("self")
    t = xt.tanh(activations.softplus(x))
    return xt.mul(grad, xt.add(t, xt.mul(xt.mul(x, xt.sigmoid(x)), xt.sub(scalar(1, x), xt.mul(t, t)))))


@aten("hardsigmoid")
def hardsigmoid(cx: Context) -> Value:
    return activations.hard_sigmoid(cx.tensor("self"), 1 / 6, 0.5)


@aten("hardswish")
def hardswish(cx: Context) -> Value:
    x = cx.tensor("self")
    return xt.mul(x, activations.hard_sigmoid(x, 1 / 6, 0.5))


@aten("glu")
def glu(cx: Context) -> Value:
    """The first half along a dim times the sigmoid of the second."""
    x, axis = cx.tensor("self"), cx.axis()
    half = cx.out().shape[axis]
    return xt.mul(slice_axis(x, axis, 0, half), xt.sigmoid(slice_axis(x, axis, half, half + half)))


@aten("threshold")
def threshold(cx: Context) -> Value:
    """x above the threshold (or NaN), else the value."""
    x = cx.tensor("self")
    below = xt.compare(x, cx.scalar(cx["threshold"], x), direction="le")
    return xt.select(below, cx.scalar(cx["value"], x), x)


@aten("hardshrink", "softshrink")
def shrink(cx: Context) -> Value:
    """0 within lambd of 0; outside x, nearer to 0 by lambd for softshrink."""
    x = cx.tensor("self")
    limit = cx.scalar(cx["lambd"], x)
    zero, inside = scalar(0, x), xt.compare(xt.abs(x), limit, direction="le")
    if "hard" in cx.node.op:
        return xt.select(inside, zero, x)
    return xt.select(inside, xt.mul(x, zero), xt.select(_above(x, zero), xt.sub(x, limit), xt.add(x, limit)))


@aten("log_sigmoid", "log_sigmoid_forward")
def log_sigmoid(cx: Context) -> Value | tuple[Value, Value]:
    """-softplus(-x); what backward may read on a CPU is e^-|x|."""
    x = cx.tensor("self")
    out = xt.neg(activations.softplus(xt.neg(x)))
    if len(cx.node.results) == 1:
        return out
    kind = cx.out(1)
    saved = xt.exp(xt.neg(xt.abs(x)))
    return out, saved if kind.rank == rank_of(x) else xt.broadcast(xt.scalar(0, kind.dtype), shape=kind.shape)

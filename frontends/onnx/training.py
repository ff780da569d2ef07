"""Optimiser steps of ai.onnx.preview.training; operands come as groups of one tensor for each parameter."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, scalar

_DOMAIN = "ai.onnx.preview.training"


def _groups(cx: Context, kinds: int) -> Sequence[tuple[Value, ...]]:
    """The operands after the rate and the step count: (parameter, gradient, states...) for each parameter."""
    count = (len(cx) - 2) // kinds
    return [tuple(cx[2 + k * count + i] for k in range(kinds)) for i in range(count)]


def _interleaved(rows: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    return tuple(v for column in zip(*rows, strict=True) for v in column)


def _regularised(cx: Context, gradient: Value, x: Value) -> Value:
    return xt.add(gradient, xt.mul(x, scalar(cx.attr("norm_coefficient", 0.0), x)))


@onnx_op("Adagrad", domain=_DOMAIN)
def adagrad(cx: Context) -> tuple[Value, ...]:
    """X' = X - r * G / (sqrt(H') + eps) with H' = H + G^2."""
    rows = []
    for x, g, h in _groups(cx, 3):
        steps = convert(cx[1], element(x))
        decay = xt.add(scalar(1, x), xt.mul(steps, scalar(cx.attr("decay_factor", 0.0), x)))
        rate = xt.div(convert(cx[0], element(x)), decay)
        g = _regularised(cx, g, x)
        total = xt.add(h, xt.mul(g, g))
        move = xt.div(g, xt.add(xt.sqrt(total), scalar(cx.attr("epsilon", 0.0), x)))
        rows.append((xt.sub(x, xt.mul(rate, move)), total))
    return _interleaved(rows)


@onnx_op("Adam", domain=_DOMAIN)
def adam(cx: Context) -> tuple[Value, ...]:
    """X' = X - r * V' / (sqrt(H') + eps), V' and H' being moving means of G and G^2."""
    alpha, beta = cx.attr("alpha", 0.9), cx.attr("beta", 0.999)
    rows = []
    for x, g, v, h in _groups(cx, 4):
        g = _regularised(cx, g, x)
        v = xt.add(xt.mul(v, scalar(alpha, v)), xt.mul(g, scalar(1 - alpha, g)))
        h = xt.add(xt.mul(h, scalar(beta, h)), xt.mul(xt.mul(g, g), scalar(1 - beta, g)))
        rate = _corrected(cx, x, alpha, beta)
        move = xt.div(v, xt.add(xt.sqrt(h), scalar(cx.attr("epsilon", 1e-6), h)))
        x = xt.sub(x, xt.mul(rate, move))
        rows.append((xt.mul(x, scalar(1 - cx.attr("norm_coefficient_post", 0.0), x)), v, h))
    return _interleaved(rows)


def _corrected(cx: Context, x: Value, alpha: float, beta: float) -> Value:
    """The rate with the correction of the means' start, after the first step."""
    rate, steps = convert(cx[0], element(x)), convert(cx[1], element(x))
    one = scalar(1, x)
    bent = xt.mul(rate, xt.div(xt.sqrt(xt.sub(one, xt.pow(scalar(beta, x), steps))),
                               xt.sub(one, xt.pow(scalar(alpha, x), steps))))
    return xt.select(xt.compare(steps, scalar(0, x), direction="gt"), bent, rate)


@onnx_op("Momentum", domain=_DOMAIN)
def momentum(cx: Context) -> tuple[Value, ...]:
    """X' = X - r * V', V' = alpha * V + beta * G; with mode nesterov X' = X - r * (G + alpha * V')."""
    alpha = cx.attr("alpha")
    rows = []
    for x, g, v in _groups(cx, 3):
        g = _regularised(cx, g, x)
        rate, first = convert(cx[0], element(x)), xt.compare(cx[1], xt.scalar(0, "i64"), direction="eq")
        beta = xt.select(first, scalar(1, x), scalar(cx.attr("beta"), x))
        v = xt.add(xt.mul(v, scalar(alpha, v)), xt.mul(g, beta))
        move = xt.add(g, xt.mul(v, scalar(alpha, v))) if cx.attr("mode") == "nesterov" else v
        rows.append((xt.sub(x, xt.mul(rate, move)), v))
    return _interleaved(rows)

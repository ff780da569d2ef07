"""Activations."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import relu, scalar


def positive_or(x: Value, other: Any) -> Value:
    """x where it is above 0, else `other`."""
    return xt.select(xt.compare(x, scalar(0, x), direction="gt"), x, other)


def softplus(x: Value) -> Value:
    """log(1 + e^x) as max(x, 0) + log1p(e^-|x|), which does not overflow."""
    return xt.add(relu(x), xt.log1p(xt.exp(xt.neg(xt.abs(x)))))


def hard_sigmoid(x: Value, alpha: float, beta: float) -> Value:
    """max(0, min(1, alpha * x + beta))."""
    line = xt.add(xt.mul(x, scalar(alpha, x)), scalar(beta, x))
    return xt.minimum(xt.maximum(line, scalar(0, x)), scalar(1, x))

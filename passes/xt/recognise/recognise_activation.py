"""Gelu and sigmoid, as exporters spell them out."""

from __future__ import annotations

import math

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.match import NoMatch, Pattern, dims_of, factors, no_match, number
from xcc.passes.xt.graph.rewrite import name_of, producer, same_type


def gelu(op: Operation) -> Value | NoMatch | None:
    """0.5 * x * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)), in any order -> gelu(x)."""
    constant, rest = factors(op.results[0])
    if len(rest) != 2:
        return None
    for x, bend in (rest, rest[::-1]):
        curve = _one_plus(bend)
        if curve is None or name_of(curve) not in ("erf", "tanh"):
            continue
        if not _near(constant, 0.5) or not same_type(x, op.results[0]):
            return no_match(op, f"the product's constant is {constant:g}, not 0.5")
        inner, values = factors(curve.operands[0])
        if name_of(curve) == "erf":
            if values == [x] and _near(inner, math.sqrt(0.5)):
                return xt.gelu(x)
            return no_match(op, "the argument of erf is not x / sqrt 2")
        if _is_cubic(inner, values, x):
            return xt.gelu(x, approximate="tanh")
        return no_match(op, "the argument of tanh is not sqrt(2/pi) * (x + 0.044715 x^3)")
    return None


def _one_plus(value: Value) -> Operation | None:
    """The op that makes y where value = 1 + y."""
    op = producer(value, "add")
    if op is None:
        return None
    for y, c in (tuple(op.operands), tuple(op.operands)[::-1]):
        if number(c) == 1:
            return producer(y)
    return None


def _is_cubic(constant: float, values: list[Value], x: Value) -> bool:
    if not _near(constant, math.sqrt(2 / math.pi)):
        return False
    if len(values) == 1:
        total = producer(values[0], "add")
        return total is not None and any(
            a == x and _is_power(b, x, 3) for a, b in (tuple(total.operands), tuple(total.operands)[::-1]))
    if len(values) == 2 and x in values:
        total = producer(values[1] if values[0] == x else values[0], "add")
        return total is not None and any(
            number(a) == 1 and _is_power(b, x, 2) for a, b in (tuple(total.operands), tuple(total.operands)[::-1]))
    return False


def _is_power(value: Value, x: Value, n: int) -> bool:
    constant, values = factors(value)
    return _near(constant, 0.044715) and values == [x] * n


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-3 * abs(b)


def sigmoid(op: Operation) -> Value | None:
    """reciprocal(1 + exp(-x)), 1 / (1 + exp(-x)) -> sigmoid(x); y / (1 + exp(-x)) -> y * sigmoid(x)."""
    top, bottom = (None, op.operands[0]) if name_of(op) == "reciprocal" else tuple(op.operands)
    power = _one_plus(bottom)
    inner = producer(power.operands[0], "neg") if power is not None and name_of(power) == "exp" else None
    if inner is None:
        return None
    s = xt.sigmoid(inner.operands[0])
    if top is None or number(top) == 1 and dims_of(op.results[0]) == dims_of(s):
        return s
    return xt.mul(top, s)


PATTERNS: dict[str, list[Pattern]] = {"mul": [gelu], "div": [sigmoid], "reciprocal": [sigmoid]}

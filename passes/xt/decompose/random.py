"""Philox 4x32-10 as integer arithmetic in ui64 on the element's position."""

from __future__ import annotations

import math
from typing import Any

from xcc.dialects import xt
from xcc.dialects.xt.random import KEY_STEPS, MASK, MULTIPLIERS, ROUNDS
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert
from xcc.symbolic import product


def _u64(value: int) -> Any:
    return xt.scalar(value, "ui64")


def _high(x: Any) -> Any:
    return xt.shift_right(x, _u64(32))


def _low(x: Any) -> Any:
    return xt.and_(x, _u64(MASK))


def philox(shape: tuple[Any, ...], seed: int) -> tuple[Any, Any]:
    """The first two words for each element, as ui64."""
    position = xt.iota(shape=(product(shape),), dtype="ui64")
    zero = xt.broadcast(_u64(0), shape=(product(shape),))
    c = [_low(position), _high(position), zero, zero]
    key = [seed & MASK, (seed >> 32) & MASK]
    for _ in range(ROUNDS):
        first, second = xt.mul(c[0], _u64(MULTIPLIERS[0])), xt.mul(c[2], _u64(MULTIPLIERS[1]))
        c = [xt.xor(xt.xor(_high(second), c[1]), _u64(key[0])), _low(second),
             xt.xor(xt.xor(_high(first), c[3]), _u64(key[1])), _low(first)]
        key = [(k + step) & MASK for k, step in zip(key, KEY_STEPS, strict=True)]
    return xt.reshape(c[0], shape=shape), xt.reshape(c[1], shape=shape)


def _unit(word: Any) -> Any:
    """The upper 24 of 32 bits as f32 in [0, 1)."""
    y = xt.convert(xt.convert(xt.shift_right(word, _u64(8)), dtype="i32"), dtype="f32")
    return xt.mul(y, const(2.0**-24, y))


@decomposes("random_uniform")
def random_uniform(a: Any) -> Any:
    """low + (high - low) * unit."""
    u = _unit(philox(a.shape, a.seed)[0])
    return convert(xt.add(xt.mul(u, const(a.high - a.low, u)), const(a.low, u)), a.dtype)


@decomposes("random_normal")
def random_normal(a: Any) -> Any:
    """Box and Muller."""
    first, second = map(_unit, philox(a.shape, a.seed))
    log = xt.log(xt.add(first, const(2.0**-24, first)))
    radius = xt.sqrt(xt.mul(log, const(-2.0, log)))
    y = xt.mul(radius, xt.cos(xt.mul(second, const(2 * math.pi, second))))
    return convert(xt.add(xt.mul(y, const(a.scale, y)), const(a.mean, y)), a.dtype)

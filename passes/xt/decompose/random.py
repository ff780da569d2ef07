"""Philox 4x32-10 as integer arithmetic in ui64 on the element's position; the key may be a value of the run."""

from __future__ import annotations

import math
from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.random import KEY_STEPS, MASK, MULTIPLIERS, ROUNDS
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert
from xcc.symbolic import Dim, product


def _u64(value: int) -> Value:
    return xt.scalar(value, "ui64")


def _high(x: Value) -> Value:
    return xt.shift_right(x, _u64(32))


def _low(x: Value) -> Value:
    return xt.and_(x, _u64(MASK))


def _halves(value: Value | int) -> list[Any]:
    """The words of a number, or of an i64 of one element as ui64 scalars, the lower one first."""
    if isinstance(value, int):
        return [value & MASK, (value >> 32) & MASK]
    whole = xt.bitcast(xt.reshape(value, shape=()), dtype="ui64")
    return [_low(whole), _high(whole)]


def _word(half: Value | int) -> Value:
    return _u64(half) if isinstance(half, int) else half


def _stepped(half: Value | int, step: int) -> Value | int:
    return (half + step) & MASK if isinstance(half, int) else _low(xt.add(half, _u64(step)))


def philox(shape: tuple[Dim, ...], seed: Value, offset: Value) -> tuple[Value, Value]:
    """The first two words for each element, as ui64. `seed` and `offset` are numbers or values."""
    position = xt.iota(shape=(product(shape),), dtype="ui64")
    start = [xt.broadcast(_word(half), shape=(product(shape),)) for half in _halves(offset)]
    c, key = [_low(position), _high(position), *start], _halves(seed)
    for _ in range(ROUNDS):
        first, second = xt.mul(c[0], _u64(MULTIPLIERS[0])), xt.mul(c[2], _u64(MULTIPLIERS[1]))
        c = [xt.xor(xt.xor(_high(second), c[1]), _word(key[0])), _low(second),
             xt.xor(xt.xor(_high(first), c[3]), _word(key[1])), _low(first)]
        key = [_stepped(half, step) for half, step in zip(key, KEY_STEPS, strict=True)]
    return xt.reshape(c[0], shape=shape), xt.reshape(c[1], shape=shape)


def _words(a: Attrs, seed: Value, offset: Value) -> tuple[Value, Value]:
    return philox(a.shape, a.seed if seed is None else seed, 0 if offset is None else offset)


def _unit(word: Value) -> Value:
    """The upper 24 of 32 bits as f32 in [0, 1)."""
    y = xt.convert(xt.convert(xt.shift_right(word, _u64(8)), dtype="i32"), dtype="f32")
    return xt.mul(y, const(2.0**-24, y))


@decomposes("random_uniform")
def random_uniform(a: Attrs, seed: Value, offset: Value) -> Value:
    """low + (high - low) * unit."""
    u = _unit(_words(a, seed, offset)[0])
    return convert(xt.add(xt.mul(u, const(a.high - a.low, u)), const(a.low, u)), a.dtype)


@decomposes("random_normal")
def random_normal(a: Attrs, seed: Value, offset: Value) -> Value:
    """Box and Muller."""
    first, second = map(_unit, _words(a, seed, offset))
    log = xt.log(xt.add(first, const(2.0**-24, first)))
    radius = xt.sqrt(xt.mul(log, const(-2.0, log)))
    y = xt.mul(radius, xt.cos(xt.mul(second, const(2 * math.pi, second))))
    return convert(xt.add(xt.mul(y, const(a.scale, y)), const(a.mean, y)), a.dtype)

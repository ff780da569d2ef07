"""Random steps with 8-bit numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from graph_builder import Builder, Value
from graph_step import F32, pads, step


def scale_zero(b: Builder, dtype: Any, largest: float, n: int = 0) -> tuple[Value, Value]:
    scale = np.full([n] if n else [], max(largest, 0.1) / 100.0) * b.rng.uniform(0.7, 1.3, [n] if n else [])
    zero = b.rng.integers(100, 150, scale.shape) if dtype == np.uint8 else b.rng.integers(-9, 9, scale.shape)
    return b.constant(scale, F32), b.constant(zero if b.chance(0.7) else zero * 0, dtype)


@step(2)
def quantise(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32)
    if x is None:
        return
    dtype = b.pick([np.int8, np.uint8])
    along = [i for i in range(x.rank) if x.static(i) and x.shape[i]]
    axis = b.pick(along) if along and b.chance(0.3) else None
    scale, zero = scale_zero(b, dtype, x.largest, x.shape[axis] if axis is not None else 0)
    attrs = {"axis": axis} if axis is not None else {}
    q = b.emit("QuantizeLinear", x, scale, zero, exact=True, **attrs)
    if q:
        b.emit("DequantizeLinear", q[0], scale, zero, **attrs)


@step(2)
def quantised_product(b: Builder) -> None:
    x = b.value(lambda v: v.dtype in (np.int8, np.uint8) and v.rank >= 2)
    if x is None:
        return
    sx, zx = scale_zero(b, x.dtype.type, 2.0)
    wt = b.pick([np.int8, np.uint8]) if x.dtype == np.uint8 else np.int8
    sy, zy = scale_zero(b, x.dtype.type, 10.0)
    if x.rank in (3, 4) and x.static(1) and min(x.shape) and b.chance(0.6):
        c, n = x.shape[1], x.rank - 2
        group = b.pick([1, 1, c])
        out, kernel = group * b.pick([1, 2, 4]), [b.int(1, 3) for _ in range(n)]
        w = b.constant(b.rng.integers(-100 if wt == np.int8 else 0, 100, (out, c // group, *kernel)), wt)
        extra = pads(b, n)
        per = out if b.chance(0.4) else 0
        sw = b.constant(b.rng.uniform(0.005, 0.02, [per] if per else []), F32)
        zw = b.constant(np.full([per] if per else [], 0 if wt == np.int8 else 120), wt)
        if b.chance(0.5):
            bias = [b.constant(b.rng.integers(-500, 500, out), np.int32)] * b.int(0, 1)
            b.emit("QLinearConv", x, sx, zx, w, sw, zw, sy, zy, *bias, group=group, kernel_shape=kernel, **extra)
        elif b.chance(0.5):
            b.emit("ConvInteger", x, w, zx, group=group, kernel_shape=kernel, exact=True, **extra)
        else:
            data = b.emit("DequantizeLinear", x, sx, zx)
            weights = b.emit("DequantizeLinear", w, sw, zw, axis=0)
            y = data and weights and b.emit("Conv", data[0], weights[0], group=group, kernel_shape=kernel, **extra)
            if y and b.chance(0.8):
                y = b.emit("Relu", y[0], copies=True) or y if b.chance(0.5) else y
                b.emit("QuantizeLinear", y[0], sy, zy)
    elif x.static(x.rank - 1):
        k, n = x.shape[-1], b.pick([1, 4, 16, 17])
        w = b.constant(b.rng.integers(-100 if wt == np.int8 else 0, 100, (k, n)), wt)
        sw, zw = b.constant(0.01, F32), b.constant(0 if wt == np.int8 else 120, wt)
        match b.int(0, 2):
            case 0:
                b.emit("QLinearMatMul", x, sx, zx, w, sw, zw, sy, zy)
            case 1:
                b.emit("MatMulInteger", x, w, zx, *[zw] * b.int(0, 1), exact=True)
            case _:
                data = b.emit("DequantizeLinear", x, sx, zx)
                weights = b.emit("DequantizeLinear", w, sw, zw)
                y = data and weights and b.emit("MatMul", data[0], weights[0])
                y and b.emit("QuantizeLinear", y[0], sy, zy)

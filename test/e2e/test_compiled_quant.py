"""Quantised values compiled for the CPU: by tensor, axis and block, to every type, and products of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import SIZES, check, examples, filled, shapes
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.types import NUMPY_DTYPES

F32 = np.dtype(np.float32)
CODES = ["i8", "ui8", "i16", "ui16", "i4", "ui4", "i2", "ui2", "f8E4M3FN", "f8E5M2"]
SCALES = [F32, F32, np.dtype(np.float16), NUMPY_DTYPES["bf16"]]


@st.composite
def granular(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]:
    """A shape, the shape of its scales, and the attributes that say how they spread."""
    shape = draw(shapes((1, 4), SIZES.filter(bool), 1 << 12))
    how, axis = draw(st.sampled_from(["tensor", "axis", "block"])), draw(st.integers(0, len(shape) - 1))
    back = axis - len(shape) if draw(st.booleans()) else axis
    if how == "tensor":
        return shape, (), {}
    if how == "axis":
        return shape, (shape[axis],), {"axis": back}
    block = draw(st.integers(1, 5))
    blocks = tuple(-(-n // block) if d == axis else n for d, n in enumerate(shape))
    return shape, blocks, {"axis": back, "block": block}


def zero_points(shape: Any, code: str, seed: int) -> Any:
    low, high = {"i2": (-2, 2), "ui2": (0, 4), "i4": (-8, 8), "ui4": (0, 16)}.get(code, (0, 100))
    return np.random.default_rng(seed).integers(low, high, shape).astype(NUMPY_DTYPES[code])


@given(st.data())
@examples(24)
def test_quantize_and_back(data: Any) -> None:
    shape, scales, options = data.draw(granular())
    code, kind = data.draw(st.sampled_from(CODES)), data.draw(st.sampled_from(SCALES))
    x = filled(shape, data.draw(st.sampled_from([F32, kind])), 0, -40, 40)
    scale = filled(scales, kind, 1, 0.05, 1)
    zero = [zero_points(scales, code, 2)] if not code.startswith("f") and data.draw(st.booleans()) else []
    dynamic, reciprocal = data.draw(st.booleans()) and "block" not in options, data.draw(st.booleans())

    def body(x: Any, scale: Any, *zero: Any) -> Any:
        q = xt.quantize(x, scale, *zero, dtype=code, reciprocal=reciprocal, **options)
        return q, xt.dequantize(q, scale, *zero, **options)

    check(body, x, scale, *zero, dynamic=dynamic)


@given(st.data())
@examples(5)
def test_dynamic_quantize(data: Any) -> None:
    low, high = data.draw(st.sampled_from([(-3, 3), (1, 2), (-2, -1), (0, 0)]))
    x = filled(data.draw(shapes((0, 3))), F32, 0, low, high)
    check(xt.dynamic_quantize, x, dynamic=data.draw(st.booleans()))


@given(st.data())
@examples(10)
def test_product_of_quantised(data: Any) -> None:
    """What exporters write around an integer product: dequantize both, multiply, add a bias, quantize."""
    m, n, k = (data.draw(st.sampled_from([1, 2, 7, 16, 33, 64])) for _ in range(3))
    left, right = data.draw(st.sampled_from(["i8", "ui8"])), data.draw(st.sampled_from(["i8", "i8", "ui8"]))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 100, s).astype(NUMPY_DTYPES[t]) for s, t in (((m, k), left), ((k, n), right)))
    each = data.draw(st.booleans())
    scale = filled((n,) if each else (), F32, 2, 0.01, 0.02)

    def body(a: Any, b: Any, scale: Any, bias: Any) -> Any:
        x = xt.dequantize(a, xt.scalar(0.01, "f32"))
        w = xt.dequantize(b, scale, axis=1) if each else xt.dequantize(b, scale)
        y = xt.add(xt.matmul(x, w), bias)
        return y, xt.matmul(xt.convert(a, dtype="i32"), xt.convert(b, dtype="i32"))

    check(body, a, b, scale, filled((n,), F32, 4), dynamic=data.draw(st.booleans()), tolerance=4)

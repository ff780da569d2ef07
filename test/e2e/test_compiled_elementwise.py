"""Pointwise ops, casts and movement compiled for the CPU, over shapes and types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import FLOATS, INTEGERS, SIZES, SMALL, arrays, check, examples, filled, shapes
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.types import NUMPY_DTYPES, numpy_dtype

BOOL = np.dtype(bool)
UNARY = ["abs", "neg", "sign", "exp", "sqrt", "reciprocal", "log", "sin", "tanh", "erf", "sigmoid", "floor", "round",
         "is_nan"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "mod"]


@given(st.data())
@examples(20)
def test_unary(data: Any) -> None:
    name = data.draw(st.sampled_from(UNARY))
    low = 0.1 if name in ("sqrt", "log", "reciprocal") else -3
    x = data.draw(arrays(shapes(), FLOATS, low))
    check(getattr(xt, name), x, dynamic=data.draw(st.booleans()))


@st.composite
def broadcast_pairs(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = draw(shapes())
    def side() -> tuple[int, ...]:
        kept = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
        return tuple(kept[draw(st.integers(0, len(kept))):]) if draw(st.booleans()) else tuple(kept)
    return side(), side()


@given(st.data())
@examples(40)
def test_binary_broadcasts(data: Any) -> None:
    name = data.draw(st.sampled_from(BINARY))
    dtype = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    a, b = data.draw(broadcast_pairs())
    x, y = data.draw(arrays(a, [dtype])), data.draw(arrays(b, [dtype]))
    if name in ("div", "mod") and dtype.kind not in "iu":
        y = np.where(np.abs(y.astype(np.float32)) < 0.5, np.ones_like(y), y)
    if name == "mod" and dtype.kind not in "iu":
        name = "sub"
    check(getattr(xt, name), x, y, dynamic=data.draw(st.booleans()))


@given(st.data())
@examples(20)
def test_compare_select_logic(data: Any) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    a, b = data.draw(broadcast_pairs())
    x, y = data.draw(arrays(a, [dtype])), data.draw(arrays(b, [dtype]))
    direction = data.draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))

    def body(x: Any, y: Any) -> Any:
        c = xt.compare(x, y, direction=direction)
        return xt.select(c, x, y), xt.or_(c, xt.not_(xt.compare(y, x, direction="gt")))

    check(body, x, y, dynamic=data.draw(st.booleans()))


CAST = [n for n in NUMPY_DTYPES if n != "f8E8M0FNU"]


@given(st.data())
@examples(60)
def test_convert(data: Any) -> None:
    """Every pair of element types, the narrow ones by every one of their values."""
    source, target = data.draw(st.sampled_from(CAST)), data.draw(st.sampled_from([*CAST, "f8E8M0FNU"]))
    dtype = NUMPY_DTYPES[source]
    if dtype.itemsize == 1 and source != "i1":
        bits = {"i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "f4E2M1FN": 4}.get(source, 8)
        x = np.arange(1 << bits, dtype=np.uint8).view(dtype)
    else:
        x = data.draw(arrays((67,), [dtype], -500, 500)) if source != "i1" else filled((67,), dtype)
    if target in ("f4E2M1FN", "f8E8M0FNU"):     # which have no NaN, or nothing but it below zero
        x = x[~np.isnan(x.astype(np.float64))]
    saturate = data.draw(st.booleans()) and target != "f8E8M0FNU"
    check(lambda v: xt.convert(v, dtype=target, saturate=saturate), x)


@given(st.data())
@examples(40)
def test_movement(data: Any) -> None:
    """A chain of up to three movements of data, with arithmetic between them."""
    shape = data.draw(shapes((1, 4), SMALL))
    x = data.draw(arrays(shape, [*FLOATS, BOOL, *INTEGERS]))
    steps = data.draw(st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=3))
    seeds = [data.draw(st.integers(0, 1 << 16)) for _ in steps]

    def body(v: Any) -> Any:
        for step, seed in zip(steps, seeds, strict=True):
            v = MOVES[step](v, np.random.default_rng(seed))
        return v

    check(body, x)


def _slice(v: Any, rng: Any) -> Any:
    dims = xt.shape_of(v)
    starts = [int(rng.integers(0, n + 1)) for n in dims]
    strides = [int(rng.choice([-2, -1, 1, 1, 2, 3])) for _ in dims]
    limits = [int(rng.integers(s, n + 1)) for s, n in zip(starts, dims, strict=True)]
    starts, limits, strides = zip(*[(s, e, t) if t > 0 or e == s else (e - 1, s - 1, t)
                                    for s, e, t in zip(starts, limits, [abs(t) for t in strides], strict=True)],
                                  strict=True)
    return xt.slice_(v, starts=starts, limits=limits, strides=strides)


def _pad(v: Any, rng: Any) -> Any:
    rank = len(xt.shape_of(v))
    low, high = ([int(n) for n in rng.integers(0, 3, rank)] for _ in range(2))
    return xt.pad(v, low=low, high=high, interior=[int(n) for n in rng.integers(0, 2, rank)])


def _concatenate(v: Any, rng: Any) -> Any:
    axis = int(rng.integers(-len(xt.shape_of(v)), len(xt.shape_of(v))))
    return xt.concatenate(v, xt.reverse(v, axes=[axis]), v, axis=axis)


def _reshape(v: Any, rng: Any) -> Any:
    dims = list(xt.shape_of(v))
    if len(dims) > 1 and rng.random() < 0.5:
        at = int(rng.integers(0, len(dims) - 1))
        return xt.reshape(v, shape=(*dims[:at], dims[at] * dims[at + 1], *dims[at + 2:]))
    at = int(rng.integers(0, len(dims) + 1))
    return xt.reshape(v, shape=(*dims[:at], 1, *dims[at:]))


def _broadcast(v: Any, rng: Any) -> Any:
    dims = xt.shape_of(v)
    return xt.broadcast(v, shape=(2, *[3 if n == 1 and rng.random() < 0.5 else n for n in dims])) \
        if len(dims) < 5 else v


MOVES = {"slice": _slice, "pad": _pad, "concatenate": _concatenate, "reshape": _reshape, "broadcast": _broadcast,
         "transpose": lambda v, rng: xt.transpose(v, perm=[int(p) for p in rng.permutation(len(xt.shape_of(v)))]),
         "reverse": lambda v, rng: xt.reverse(v, axes=[int(rng.integers(0, len(xt.shape_of(v))))]),
         "double": lambda v, rng: xt.maximum(v, v)}


@pytest.mark.parametrize("n", [7, 9, 12, 17, 25])
def test_short_rows_of_bf16(n: int) -> None:
    """Whole rows in registers, as parameters of convolutions have them; LLVM knows bf16 on some CPUs only."""
    x = filled((33, 5, n), np.dtype(ml_dtypes.bfloat16))
    check(lambda v: xt.transpose(v, perm=(2, 1, 0)), x)
    check(lambda v: xt.reverse(v, axes=[0]), x)


@pytest.mark.parametrize("shape, perm, dtype", [
    ((13, 21, 2), (1, 0, 2), np.uint8), ((5, 13, 3, 2, 2), (1, 2, 0, 3, 4), np.float16),
    ((4, 3, 13, 2), (2, 0, 1, 3), np.float32)])
def test_transposes_that_keep_a_few_bytes(shape: Any, perm: Any, dtype: Any) -> None:
    x = np.random.default_rng(2).integers(0, 250, shape).astype(dtype)
    check(lambda v: xt.transpose(v, perm=perm), x, dynamic=dtype == np.uint8)


@pytest.mark.parametrize("dtype", ["ui8", "f32", "bf16"])
def test_short_rows_are_turned(dtype: str) -> None:
    """Rows of 2 to 7 elements, several of which are read and stored as one vector, and what is left of them."""
    xs = [np.random.default_rng(n).integers(0, 250, (n, 61)).astype(numpy_dtype(dtype)) for n in (2, 3, 4, 5, 7)]
    check(lambda *vs: [xt.transpose(v, perm=(1, 0)) for v in vs], *xs)
    check(lambda *vs: [xt.add(v, xt.transpose(u, perm=(1, 0))) for v, u in zip(vs[:5], vs[5:], strict=True)],
          *xs, *(x.T.copy() for x in xs))


@given(st.data())
@examples(10)
def test_iota(data: Any) -> None:
    shape = data.draw(shapes((1, 3), SIZES))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = data.draw(arrays(shape, [np.dtype(np.int64), np.dtype(np.float32)]))
    check(lambda v: xt.add(v, xt.iota(shape=shape, axis=axis, dtype=xt.dtype_name(x.dtype))), x)

"""Reductions, products, convolutions and pooling compiled for the CPU, over shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import BF16, FLOATS, INTEGERS, SIZES, arrays, check, examples, filled, shapes
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.types import numpy_dtype

F32 = np.dtype(np.float32)
BOOL = np.dtype(bool)


@given(st.data())
@examples(12)
def test_reduce(data: Any) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTEGERS, BOOL]))
    kinds = ["and", "or", "max", "min"] if dtype == BOOL else ["sum", "prod", "max", "min"]
    kinds += ["and", "or"] if dtype.kind in "iu" else []
    kind = data.draw(st.sampled_from(kinds))
    x = data.draw(arrays(shapes((1, 4)), [dtype], 0.9, 1.1) if kind == "prod" else arrays(shapes((1, 4)), [dtype]))
    axes = data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), min_size=1, max_size=x.ndim))
    keep = data.draw(st.booleans())
    if kind == "prod" and dtype.kind not in "iu":
        x = x[tuple(slice(0, 33) for _ in x.shape)]
    check(lambda v: xt.reduce(v, kind=kind, axes=axes, keepdims=keep), x, dynamic=data.draw(st.booleans()),
          tolerance=4)


@pytest.mark.parametrize("kind, dtype", [("max", "f32"), ("min", "f64")])
def test_extremes_with_nan(kind: str, dtype: str) -> None:
    """A NaN at any place of a row of several vectors, early or late, in one of its dims or the other."""
    x = np.random.default_rng(1).standard_normal((5, 90, 3, 41)).astype(numpy_dtype(dtype))
    for row in range(80):
        x[row % 5, row, row % 3, row % 41] = np.nan
    check(lambda v: xt.reduce(v, kind=kind, axes=[0, 2, 3], keepdims=False), x)
    check(lambda v: xt.reduce(v, kind=kind, axes=[0], keepdims=False), x)


@pytest.mark.parametrize("kind, dtype, row", [
    ("max", "f32", 7), ("sum", "f32", 13), ("min", "f64", 5), ("max", "f16", 30), ("sum", "bf16", 3),
    ("max", "ui8", 40)])
def test_rows_of_few_vectors(kind: str, dtype: str, row: int) -> None:
    """As many rows as a vector has lanes are turned at once; the last ones are fewer, some have a NaN."""
    x = filled((3, 37, row), numpy_dtype(dtype))
    if kind in ("max", "min") and dtype != "ui8":
        x[np.arange(37) % 3, np.arange(37), np.arange(37) % row] = np.nan
    check(lambda v: xt.reduce(v, kind=kind, axes=[2], keepdims=False), x, dynamic=row in (7, 13), tolerance=4)


@pytest.mark.parametrize("kind, dtype, shape, axes", [
    ("sum", "f32", (100_003,), [0]), ("max", "f16", (3, 35_000), [0, 1]), ("sum", "bf16", (5, 4_097, 30), [0, 1])])
def test_few_long_sums(kind: str, dtype: str, shape: tuple[int, ...], axes: list[int]) -> None:
    """Of everything and of few columns, in parts for the cores; of what is computed on the way."""
    x, y = filled(shape, numpy_dtype(dtype)), filled(shape[-1:], numpy_dtype(dtype))
    check(lambda v, w: xt.reduce(xt.mul(v, w), kind=kind, axes=axes, keepdims=False), x, y, tolerance=4)


@given(st.data())
@examples(6)
def test_split_slices(data: Any) -> None:
    """A kernel reads the part of a value that it works on, in another shape, where it lies."""
    dtype, stride = data.draw(st.sampled_from([F32, np.dtype(np.int8), BF16])), data.draw(st.integers(1, 2))
    split = [data.draw(st.integers(1, 9)), data.draw(st.integers(1, 70))]
    rows, start, behind = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    axes = data.draw(st.sampled_from([[1], [2], [0, 2]]))
    end = start + stride * (split[0] * split[1] - 1) + 1
    x = filled((rows, end + behind), dtype)

    def part(v: Any) -> Any:
        return xt.reshape(xt.slice(v, starts=[0, start], limits=[rows, end], strides=[1, stride]), shape=[rows, *split])
    check(lambda v: xt.reduce(part(v), kind="sum", axes=axes), x, tolerance=4)
    check(lambda v: xt.add(part(v), part(v)), x)


@given(st.data())
@examples(4)
def test_arg_reduce(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 3), SIZES.filter(bool)), [F32, np.dtype(np.int8), np.dtype(np.uint64), BF16]))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    kind = data.draw(st.sampled_from(["argmax", "argmin"]))
    last, keep = data.draw(st.booleans()), data.draw(st.booleans())
    check(lambda v: xt.arg_reduce(v, kind=kind, axis=axis, select_last=last, keepdims=keep), x)


@given(st.data())
@examples(12)
def test_dot_general(data: Any) -> None:
    """Batch, free and contracted dims in any order."""
    dtype = data.draw(st.sampled_from([*FLOATS, np.dtype(np.int32), np.dtype(np.int8)]))
    sizes = {c: data.draw(SIZES) for c in "bmnk"}
    if np.prod(list(sizes.values())) > 1 << 17:
        sizes["b"] = 1
    batch = "b" if data.draw(st.booleans()) else ""
    left = data.draw(st.permutations(batch + "mk"))
    right = data.draw(st.permutations(batch + "kn"))
    a = filled([sizes[c] for c in left], dtype, 0, -1, 1)
    b = filled([sizes[c] for c in right], dtype, 1, -1, 1)
    options = {"lhs_contract": [left.index("k")], "rhs_contract": [right.index("k")],
               "lhs_batch": [left.index("b")] if batch else [], "rhs_batch": [right.index("b")] if batch else []}
    check(lambda x, y: xt.dot_general(x, y, **options), a, b, dynamic=data.draw(st.booleans()), tolerance=4)


@given(st.data())
@examples(12)
def test_convolution(data: Any) -> None:
    spatial = data.draw(st.integers(1, 3))
    def pick(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(spatial)]
    groups = data.draw(st.sampled_from([1, 1, 2, 3, 8]))
    depthwise = data.draw(st.booleans())
    inputs = groups * (1 if depthwise else data.draw(st.sampled_from([1, 2, 5])))
    outputs = groups * data.draw(st.sampled_from([1, 2, 3, 8]))
    window, strides, dilation, transposed = pick(1, 3), pick(1, 3), pick(1, 2), pick(1, 2)
    low, high = pick(0, 2), pick(0, 2)
    size = pick(5, 11 if spatial < 3 else 6)
    x = filled([data.draw(st.integers(0, 2)), inputs, *size], F32, 0, -1, 1)
    w = filled([outputs, inputs // groups, *window], F32, 1, -1, 1)
    check(lambda a, b: xt.convolution(a, b, strides=strides, low=low, high=high, lhs_dilation=transposed,
                                      rhs_dilation=dilation, groups=groups), x, w, tolerance=4)


@given(st.data())
@examples(10)
def test_padded_input_is_stored_by_its_producer(data: Any) -> None:
    """Anything in front of a padded convolution, with and without another user."""
    channels = data.draw(st.sampled_from([1, 3, 16, 40]))
    x = filled([data.draw(st.integers(1, 2)), channels, *(data.draw(st.sampled_from([1, 5, 7, 13])) for _ in "hw")],
               F32, 0, -1, 1)
    point, w = filled([channels, channels, 1, 1], F32, 1, -1, 1), filled([8, channels, 3, 3], F32, 2, -1, 1)
    make = {"product": lambda a, b: xt.abs(xt.convolution(a, b)),
            "depthwise": lambda a, b: xt.convolution(a, b, groups=channels),
            "pool": lambda a, b: xt.reduce_window(a, kind="max", window=[1, 1, 1, 1], strides=[1, 1, 1, 1]),
            "softmax": lambda a, b: xt.softmax(a, axis=1), "add": lambda a, b: xt.add(a, a), "input": lambda a, b: a}
    kind = data.draw(st.sampled_from(sorted(make)))
    if kind == "depthwise":
        point = point[:, :1]
    low, high = ([data.draw(st.integers(0, 2)) for _ in "hw"] for _ in "lh")
    low[0] = 2      # the window fits in one row
    twice = data.draw(st.booleans())

    def body(a: Any, b: Any, c: Any) -> Any:
        made = make[kind](a, b)
        y = xt.convolution(made, c, low=low, high=[max(1, h) for h in high], strides=[data_stride, 1])
        return (y, xt.neg(made)) if twice else y

    data_stride = data.draw(st.integers(1, 2))
    x = np.pad(x, [(0, 0), (0, 0), (0, 0), (0, max(0, 3 - x.shape[3]))])
    check(body, x, point, w, dynamic=kind != "depthwise" and data.draw(st.booleans()), tolerance=8)


@given(st.data())
@examples(6)
def test_reduce_window(data: Any) -> None:
    dtype = data.draw(st.sampled_from([F32, np.dtype(np.float16), np.dtype(np.int8), np.dtype(np.uint8)]))
    shape = data.draw(shapes((1, 4), st.sampled_from([3, 4, 7, 11, 17]), 4096))
    def pick(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in shape]
    kind = data.draw(st.sampled_from(["max", "min", "sum"]))
    window, strides, low, high = pick(1, 3), pick(1, 3), pick(0, 1), pick(0, 1)
    check(lambda v: xt.reduce_window(v, kind=kind, window=window, strides=strides, low=low, high=high),
          filled(shape, dtype))

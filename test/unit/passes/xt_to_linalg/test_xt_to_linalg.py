"""Conversions of arithmetic, reductions and contractions to linalg, against the ops' numpy definitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linalg_cases import RNG, check, floats, ints, positive

from xcc.dialects import xt

BF16 = np.dtype(ml_dtypes.bfloat16)


UNARY = ["abs", "neg", "sign", "exp", "exp2", "expm1", "sqrt", "rsqrt", "cbrt", "reciprocal", "log", "log1p", "log2",
         "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "sigmoid", "floor", "ceil", "round",
         "trunc", "is_nan", "is_finite", "is_inf"]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    x = positive(3, 7) if name in ("sqrt", "rsqrt", "log", "log1p", "log2", "cbrt") else floats(3, 7) * 3
    check(getattr(xt, name), x, rtol=2e-5)


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "acosh"])
def test_unary_with_bounded_domain(name: str) -> None:
    x = positive(5) + 1 if name == "acosh" else (RNG.random(5) * 1.8 - 0.9).astype(np.float32)
    check(getattr(xt, name), x, rtol=2e-5)


@pytest.mark.parametrize("name", ["sign", "floor", "round", "is_nan", "is_inf", "is_finite", "abs", "neg"])
def test_special_values(name: str) -> None:
    check(getattr(xt, name), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5], np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("name", ["abs", "neg", "sign", "not"])
def test_integer_unary(name: str, dtype: Any) -> None:
    if name == "neg" and dtype == np.uint8:
        pytest.skip("neg takes signed types")
    x = np.array([0, 1, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    check(lambda v: getattr(xt, name if name != "not" else "not_")(v), x)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "atan2", "rem", "mod"])
@pytest.mark.parametrize("shapes", [((3, 7), (3, 7)), ((3, 1), (7,)), ((1,), (2, 3)), ((), (3,)), ((0, 3), (3,))])
def test_binary_broadcasts(name: str, shapes: Any) -> None:
    check(getattr(xt, name), floats(*shapes[0]), floats(*shapes[1]), rtol=1e-5)


def test_pow() -> None:
    check(xt.pow, positive(3, 4), floats(3, 4), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rem", "mod", "maximum", "minimum", "and_", "or_", "xor",
                                  "shift_left", "shift_right"])
def test_integer_binary(name: str, dtype: Any) -> None:
    """Division by zero and INT_MIN / -1 do not trap."""
    edge = np.array([0, 1, 2, 7, np.iinfo(dtype).max, np.iinfo(dtype).min, 3])
    a, b = (v.astype(dtype).reshape(-1) for v in np.meshgrid(edge, edge))
    if np.iinfo(dtype).min < 0:
        a, b = np.append(a, [np.iinfo(dtype).min, -7, 7]).astype(dtype), np.append(b, [-1, 2, -2]).astype(dtype)
    if name.startswith("shift"):
        b = (np.abs(b.astype(np.int64)) % 40).astype(dtype)
    check(getattr(xt, name), a, b, dynamic=False)


def test_integer_pow() -> None:
    check(xt.pow, ints(12, low=-4, high=5), ints(12, low=0, high=7))
    check(lambda x: xt.pow(x, xt.scalar(3, "i32")), ints(5))


def test_next_after() -> None:
    a = np.array([0.0, 1.0, -1.0, 1.0, np.nan, np.inf, 5.0], np.float32)
    b = np.array([1.0, 2.0, -2.0, 0.0, 1.0, 0.0, 5.0], np.float32)
    check(xt.next_after, a, b, rtol=0, atol=0)


def test_nan_wins() -> None:
    a = np.array([np.nan, 1.0, 2.0, -0.0], np.float32)
    b = np.array([1.0, np.nan, 3.0, 0.0], np.float32)
    check(xt.maximum, a, b)
    check(xt.minimum, a, b)


@pytest.mark.parametrize("direction", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.bool_])
def test_compare_and_select(direction: str, dtype: Any) -> None:
    if dtype == np.bool_ and direction not in ("eq", "ne"):
        pytest.skip("bools are not ordered")
    a, b = ints(6, low=0, high=3).astype(dtype), ints(6, low=0, high=3).astype(dtype)
    check(lambda x, y: xt.select(xt.compare(x, y, direction=direction), x, y), a, b)
    check(lambda x, y: xt.compare(x, y, direction=direction), a, b)


DTYPES = ["f32", "f16", "bf16", "f64", "i8", "i32", "i64", "ui8", "ui32", "i1"]


@pytest.mark.parametrize("source", DTYPES)
def test_convert(source: str) -> None:
    values = np.array([0, 1, 2, 100, 3]) if source[0] in "ui" else np.array([0, -1.5, 2.75, 300, -3e4, 1e9, np.nan])
    with np.errstate(over="ignore"):
        x = values.astype(xt.numpy_dtype(source))
    check(lambda v: tuple(xt.convert(v, dtype=d) for d in DTYPES if d != source), x, dynamic=False)


def test_bitcast() -> None:
    check(lambda v: xt.bitcast(v, dtype="i32"), floats(3, 5))


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_narrow_floats(dtype: Any) -> None:
    check(lambda x, y: xt.mul(xt.exp(x), y), floats(3, 5, dtype=dtype), floats(5, dtype=dtype), rtol=2e-2)


def test_constants() -> None:
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(lambda x: xt.add(x, xt.constant(table)), floats(2, 3))
    check(lambda x: xt.add(x, xt.constant(np.arange(3, dtype=np.uint8))), ints(2, 3, low=0, dtype=np.uint8))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce(kind: str, axes: Any, keepdims: bool) -> None:
    check(lambda x: xt.reduce(x, kind=kind, axes=axes, keepdims=keepdims), floats(3, 1, 7), rtol=1e-5)


def test_reduce_types() -> None:
    check(lambda x: xt.reduce(x, kind="sum", axes=(1,)), floats(3, 50, dtype=np.float16), rtol=1e-3)
    check(lambda x: xt.reduce(x, kind="max", axes=(1,)), ints(3, 5, low=0, high=255, dtype=np.uint8))
    check(lambda x: xt.reduce(x, kind="or", axes=(1,)), RNG.random((3, 2)) < 0.3)
    check(lambda x: xt.reduce(x, kind="and", axes=(0,)), ints(3, 5))
    check(lambda x: xt.reduce(x, kind="sum", axes=(0,)), floats(0, 3))


def test_kept_dims_are_read_by_users() -> None:
    check(lambda x: xt.sub(x, xt.reduce(x, kind="max", axes=(1,), keepdims=True)), floats(3, 7))


def test_dot_general() -> None:
    def matmul(x: Any, y: Any) -> Any:
        return xt.dot_general(x, y, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))

    check(matmul, floats(2, 3, 7), floats(2, 7, 5), rtol=1e-5)
    check(lambda x, y: xt.dot_general(x, y, lhs_contract=(), rhs_contract=()), floats(2, 3), floats(4))
    check(lambda x, y: xt.dot_general(x, y, lhs_contract=(), rhs_contract=(), dtype="i32"), ints(3), ints(2, 5))
    check(lambda x, y: xt.dot_general(x, xt.transpose(y, perm=(1, 0)), lhs_contract=(1,), rhs_contract=(0,)),
          floats(3, 7), floats(5, 7), rtol=1e-5)
    check(matmul, floats(2, 3, 7, dtype=np.float16), floats(2, 7, 5, dtype=np.float16), rtol=1e-2, atol=1e-2)
    check(lambda x, y: xt.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,), dtype="i32"),
          ints(3, 7, low=-128, high=128, dtype=np.int8), ints(7, 5, low=-128, high=128, dtype=np.int8))


CONVOLUTIONS: dict[str, Any] = {
    "plain": ((2, 3, 7, 7), (4, 3, 3, 3), {}),
    "strided": ((1, 3, 8, 7), (4, 3, 3, 3), {"strides": (2, 2), "low": (1, 1), "high": (1, 0)}),
    "dilated": ((1, 3, 9, 9), (4, 3, 3, 2), {"rhs_dilation": (2, 3)}),
    "grouped": ((1, 6, 5, 5), (4, 3, 3, 3), {"groups": 2, "low": (1, 1), "high": (1, 1)}),
    "depthwise": ((1, 6, 5, 5), (6, 1, 3, 3), {"groups": 6}),
    "multiplier": ((1, 3, 5, 5), (6, 1, 3, 3), {"groups": 3}),
    "transposed": ((1, 3, 4, 4), (4, 3, 3, 3), {"lhs_dilation": (2, 2), "low": (2, 2), "high": (3, 2)}),
    "1d": ((2, 3, 9), (4, 3, 3), {"low": (1,), "high": (1,)}),
    "3d": ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), {}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("order", ["OIHW", "HWIO"])
def test_convolution(case: str, layout: str, order: str) -> None:
    x_shape, w_shape, options = CONVOLUTIONS[case]
    x, w, bias = floats(*x_shape), floats(*w_shape), floats(w_shape[0])
    if layout == "NHWC":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    else:
        bias = bias.reshape(-1, *[1] * (len(x_shape) - 2))
    if order == "HWIO":
        w = np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2)))

    def body(x: Any, w: Any, bias: Any) -> Any:
        y = xt.convolution(x, w, layout=layout, filter=order, **options)
        return xt.maximum(xt.add(y, bias), xt.scalar(0.0, "f32"))

    check(body, x, w, bias, rtol=1e-4, atol=1e-5, dynamic=False)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("options", [{}, {"strides": (1, 1, 2, 2), "low": (0, 0, 1, 1), "high": (0, 0, 1, 0)},
                                     {"dilations": (1, 1, 2, 1)}])
def test_reduce_window(kind: str, options: Any) -> None:
    check(lambda x: xt.reduce_window(x, kind=kind, window=(1, 1, 3, 2), **options), floats(1, 2, 7, 8), rtol=1e-5)
    check(lambda x: xt.reduce_window(x, kind=kind, window=(1, 1, 1, 1), **options), floats(1, 2, 7, 8))


def test_integer_max_pool() -> None:
    check(lambda x: xt.reduce_window(x, kind="max", window=(2, 2), low=(1, 1)), ints(4, 5, dtype=np.int8))


def test_col2im() -> None:
    check(lambda x: xt.col2im(x, image=(5, 6), block=(2, 3), strides=(2, 1), low=(1, 0), high=(0, 1), dilations=(1, 2)),
          floats(2, 18, 9), dynamic=False)


def test_packed_filter() -> None:
    def body(x: Any, w: Any, bias: Any) -> Any:
        y = xt.convolution(x, w, layout="NHWC", filter="OHWIo", low=(1, 1), high=(1, 1))
        return xt.add(y, bias)

    check(body, floats(1, 5, 4, 3), floats(2, 3, 3, 3, 8), floats(16), rtol=1e-4, atol=1e-5, dynamic=False)


@pytest.mark.parametrize("shape", [(9, 37), (3, 5000), (70, 768), (2, 3, 5, 33), (2, 16999)])
def test_results_of_rows(shape: tuple[int, ...]) -> None:
    """What a gradient needs of each row beside the rows: a mean, a logarithm of sums, the place of an element."""
    def body(x: Any, t: Any) -> list[Any]:
        d = xt.sub(x, xt.reduce(x, kind="max", axes=(last,), keepdims=True))
        log = xt.log(xt.reduce(xt.exp(d), kind="sum", axes=(last,), keepdims=True))
        picked = xt.sub(xt.gather_elements(d, t, axis=last), log)
        return [xt.sub(d, log), log, xt.reshape(picked, shape=shape[:-1])]

    last = len(shape) - 1
    check(body, floats(*shape), RNG.integers(0, shape[-1], (*shape[:-1], 1)), rtol=1e-5, atol=1e-5, dynamic=False)


@pytest.mark.parametrize("shape", [(3, 16999), (2, 2, 16400)])
def test_long_rows_are_normalized(shape: tuple[int, ...]) -> None:
    """The maximum and the sum in one walk on GPUs: with infinities below, and growing, so that each step has a larger
    maximum."""
    def body(x: Any) -> list[Any]:
        d = xt.sub(x, most(x))
        sums = xt.reduce(xt.exp(d), kind="sum", axes=(last,), keepdims=True)
        return [xt.div(xt.exp(d), sums), xt.log(sums), most(x)]

    def most(x: Any) -> Any:
        return xt.reduce(x, kind="max", axes=(last,), keepdims=True)

    x = np.sort(floats(*shape) * 4, axis=-1)
    x[..., 5:900] = -np.inf
    last = len(shape) - 1
    check(body, x, rtol=1e-5, atol=1e-7, dynamic=False)
    check(lambda x: body(x)[1:], x, rtol=1e-5, dynamic=False)
    x[0], x[1, ..., 77] = -np.inf, np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        check(lambda x: body(x)[1:], x, rtol=1e-5, dynamic=False)
        x[-1, ..., 3] = np.inf
        check(lambda x: body(x)[2:], x, rtol=1e-5, dynamic=False)

"""Every conversion to linalg, run through upstream's lowering, against the ops' numpy definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linalg_cases import build_kernel, check, evaluate, result_dims
from linalg_exec import run_kernel

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt_to_linalg.convert import XtToLinalg

RNG = np.random.default_rng(7)
BF16 = np.dtype(ml_dtypes.bfloat16)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def positive(*shape: int) -> Any:
    return np.asarray(np.abs(RNG.standard_normal(shape)) + 0.1).astype(np.float32)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32) -> Any:
    return RNG.integers(low, high, shape).astype(dtype)


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


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("last", [False, True])
def test_arg_reduce(kind: str, last: bool) -> None:
    x = np.array([[1, 3, 3, 0, 0], [2, np.nan, 5, np.nan, 1], [-np.inf] * 5], np.float32)
    for axis in (0, 1):
        check(lambda v, a=axis: xt.arg_reduce(v, kind=kind, axis=a, select_last=last, keepdims=True), x)
    check(lambda v: xt.arg_reduce(v, kind=kind, axis=0, select_last=last), ints(4, 3))


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


MOVEMENT: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: xt.transpose(x, perm=(2, 0, 1)),
    "broadcast": lambda x: xt.broadcast(x, shape=(2, 3, 4, 5)),
    "slice": lambda x: xt.slice(x, starts=(1, 0, 2), limits=(3, 4, 5), strides=(1, 2, 2)),
    "reverse": lambda x: xt.reverse(x, axes=(0, 2)),
    "pad": lambda x: xt.pad(x, low=(1, 0, 2), high=(0, 3, 1), value=1.5),
    "crop": lambda x: xt.pad(x, low=(-1, 0, 2), high=(0, -1, -1), value=1.5),
    "interior": lambda x: xt.pad(x, low=(1, 0, 0), high=(0, 0, 2), interior=(1, 2, 0), value=1.5),
    "edge": lambda x: xt.pad(x, low=(1, 0, 2), high=(0, 3, 1), mode="edge"),
    "reflect": lambda x: xt.pad(x, low=(1, 0, 7), high=(0, 3, 9), mode="reflect"),
    "wrap": lambda x: xt.pad(x, low=(1, 0, 7), high=(0, 3, 9), mode="wrap"),
    "reshape unit": lambda x: xt.reshape(x, shape=(3, 1, 4, 5, 1)),
    "reshape merge": lambda x: xt.exp(xt.reshape(x, shape=(12, 5))),
    "reshape split": lambda x: xt.exp(xt.reshape(x, shape=(3, 2, 2, 5))),
    "reshape across": lambda x: xt.exp(xt.reshape(x, shape=(10, 6))),
    "concatenate": lambda x: xt.concatenate(x, xt.exp(x), x, axis=1),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    x = floats(3, 4, 5)
    check(MOVEMENT[name], x, dynamic=False)
    check(lambda v: xt.neg(MOVEMENT[name](xt.neg(v))), x, dynamic=False)


def test_movement_of_symbolic_dims() -> None:
    x = floats(3, 4, 5)
    check(lambda v: xt.reverse(v, axes=(0, 2)), x)
    check(lambda v: xt.concatenate(v, v, axis=0), x)
    check(lambda v: xt.pad(v, low=(1, 0, 2), high=(0, 3, 1), value=1.5), x)
    check(lambda v: xt.pad(v, low=(1, 0, 2), high=(0, 3, 1), mode="reflect"), x)
    check(lambda v: xt.slice(xt.exp(v), starts=(0, 0, 0), limits=(2, 4, 5)), x, dynamic=False)
    check(lambda v: xt.slice(xt.exp(v), starts=(0, 0, 0), limits=(*xt.shape_of(v)[:2], xt.shape_of(v)[2] - 1)), x)
    check(lambda v: xt.slice(v, starts=(xt.shape_of(v)[0] - 2, 0, 1), limits=xt.shape_of(v)), x)


def test_iota() -> None:
    check(lambda x: xt.add(x, xt.iota(shape=(3, 4), axis=1, dtype="f32")), floats(3, 4), dynamic=False)


def test_gathers() -> None:
    x, at = floats(4, 5, 3), ints(2, 3, low=-4, high=4, dtype=np.int64)
    check(lambda v, i: xt.gather(v, i, axis=1), x, at)
    check(lambda v, i: xt.gather(xt.transpose(xt.slice(v, starts=(1, 1, 0), limits=(3, 5, 3)), perm=(2, 1, 0)), i),
          x, at, dynamic=False)
    check(lambda v, i: xt.gather(v, i), x, np.array([-9, 9, 0], np.int32))
    check(lambda v, i: xt.gather(v, i, axis=2, batch_dims=1), x, ints(4, 2, low=-3, high=3, dtype=np.int64))
    check(lambda v, i: xt.gather_nd(v, i), x, ints(6, 2, low=-4, high=4, dtype=np.int64), dynamic=False)
    check(lambda v, i: xt.gather_nd(v, i, batch_dims=1), x, ints(4, 1, low=-4, high=4, dtype=np.int64), dynamic=False)
    check(lambda v, i: xt.gather_elements(v, i, axis=1), x, ints(4, 2, 3, low=-4, high=4, dtype=np.int64))


def test_dynamic_slices() -> None:
    x, at = floats(4, 5), [np.array(v, np.int64) for v in (1, 9)]
    check(lambda v, i, j: xt.dynamic_slice(v, i, j, sizes=(2, 3)), x, *at)
    check(lambda v, u, i, j: xt.dynamic_update_slice(v, u, i, j), x, floats(2, 3), *at)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "logsumexp"])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_cumulative(kind: str, flags: Any) -> None:
    check(lambda x: xt.cumulative(x, kind=kind, axis=1, exclusive=flags[0], reverse=flags[1]), floats(3, 7, 2),
          rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending: bool) -> None:
    x = np.array([[3, 1, np.nan, 2, 1], [5, 4, 3, 2, 1], [0, np.inf, -np.inf, np.nan, 0]], np.float32)
    check(lambda v: xt.sort(v, axis=1, descending=descending), x)
    check(lambda v: xt.sort(v, axis=0, descending=descending), ints(7, 2, low=0, high=3))
    check(lambda v: xt.sort(v, axis=0, descending=descending), ints(13, dtype=np.uint8))


@pytest.mark.parametrize("largest", [False, True])
def test_top_k(largest: bool) -> None:
    x = ints(3, 17, low=0, high=6).astype(np.float32)
    x[1, 3] = np.nan
    for k in (1, 5, 17, 0):
        check(lambda v, k=k: xt.top_k(v, k=k, axis=1, largest=largest), x, dynamic=False)
    check(lambda v: xt.top_k(v, k=2, axis=0, largest=largest), ints(9, 2))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    x = floats(4, 5)
    check(lambda v, i, u: xt.scatter_elements(v, i, u, axis=1, reduction=reduction), x,
          ints(3, 6, low=-5, high=5, dtype=np.int64), floats(3, 6), rtol=1e-5)
    check(lambda v, i, u: xt.scatter_nd(v, i, u, reduction=reduction), x, ints(6, 1, low=-4, high=4, dtype=np.int64),
          floats(6, 5), rtol=1e-5, dynamic=False)
    check(lambda v, i, u: xt.scatter_nd(v, i, u, reduction=reduction), x, ints(6, 2, low=-4, high=4, dtype=np.int64),
          floats(6), rtol=1e-5, dynamic=False)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_max_pool_with_indices(storage_order: int) -> None:
    x = ints(2, 1, 5, 6, low=0, high=4).astype(np.float32)
    check(lambda v: xt.max_pool_with_indices(v, window=(3, 2), strides=(2, 1), low=(1, 0), high=(1, 1),
                                             storage_order=storage_order), x)


def run_sized(body: Callable[[Any], Any], *inputs: Any) -> None:
    """Ops whose result size is data: flat buffers of the upper bound, and the size as one more result."""
    module, _ = build_kernel(body, inputs)
    expected = evaluate(module, inputs)
    XtToLinalg().run(module, PassContext())
    actual = run_kernel(module, "k", inputs, result_dims(module), [*(e.dtype for e in expected), np.int64], {"n": 0})
    for a, e in zip(actual, expected, strict=False):
        np.testing.assert_array_equal(a[:e.size], e.reshape(-1))
        assert (a[e.size:].view(np.uint8) == 0x5A).all()
    sizes = {d for e in expected for d in e.shape}
    assert actual[-1][0] in sizes


def test_nonzero() -> None:
    run_sized(lambda x: xt.nonzero(x, symbol="n"), ints(3, 4, low=0, high=2))
    run_sized(lambda x: xt.nonzero(x, symbol="n"), RNG.random((2, 3, 2)) < 0.5)
    run_sized(lambda x: xt.nonzero(x, symbol="n"), np.zeros((3, 1), np.float32))


@pytest.mark.parametrize("axis", [0, 1])
def test_compress(axis: int) -> None:
    chosen = np.array([True, False, True])
    run_sized(lambda x, c: xt.compress(x, c, symbol="n", axis=axis), floats(3, 4), chosen)
    run_sized(lambda x, c: xt.compress(x, c, symbol="n", flat=True), floats(3, 4), chosen)


@pytest.mark.parametrize("ordered", [False, True])
def test_unique(ordered: bool) -> None:
    run_sized(lambda x: xt.unique(x, symbol="n", sorted=ordered), ints(4, 5, low=0, high=6))
    run_sized(lambda x: xt.unique(x, symbol="n", sorted=ordered), np.array([2, np.nan, 1, np.nan, 2], np.float32))
    for axis in (0, 1):
        x = ints(6, 6, low=0, high=2)
        x[3], x[:, 4] = x[0], x[:, 1]
        run_sized(lambda v, a=axis: xt.unique(v, symbol="n", flat=False, axis=a, sorted=ordered), x)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode: str, padding: str, align: bool) -> None:
    grid = (RNG.random((2, 3, 4, 2)) * 3 - 1.5).astype(np.float32)
    check(lambda x, g: xt.grid_sample(x, g, mode=mode, padding=padding, align_corners=align), floats(2, 3, 5, 6), grid,
          dynamic=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"mode": "max"}, {"samples": 2}, {"half_pixel": False, "spatial_scale": 0.5}])
def test_roi_align(options: Any) -> None:
    rois = np.array([[0, 0, 7, 5], [1, 2, 3.5, 9], [-3, 1, 12, 4]], np.float32)
    check(lambda x, r, b: xt.roi_align(x, r, b, size=(2, 3), **options), floats(2, 3, 6, 8), rois,
          np.array([0, 1, 1], np.int64), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align_of_boxes_far_larger_than_the_image(mode: str) -> None:
    """Of the samples of a cell, as many as it spans elements, only those in the image are read: it ends."""
    rois = np.array([[0, 0, 2e6, 5], [-2e4, -2e4, 2e4, 2e4], [0, 0, 1e9, 1e9], [0, 0, np.inf, 5], [np.nan] * 4,
                     [5, 5, -1e9, -1e9]], np.float32)
    check(lambda x, r, b: xt.roi_align(x, r, b, size=(1, 2), mode=mode), floats(1, 2, 6, 8), rois,
          np.zeros(len(rois), np.int64), dynamic=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_deform_conv(masked: bool) -> None:
    def body(x: Any, w: Any, offset: Any, bias: Any, *mask: Any) -> Any:
        return xt.deform_conv(x, w, offset, bias, *mask, strides=(2, 1), low=(1, 1), high=(1, 0), groups=2,
                              offset_groups=2)

    mask = [floats(1, 12, 3, 6)] if masked else []
    check(body, floats(1, 4, 6, 6), floats(6, 2, 3, 2), floats(1, 24, 3, 6), floats(6), *mask, rtol=1e-4, atol=1e-5,
          dynamic=False)


def test_col2im() -> None:
    check(lambda x: xt.col2im(x, image=(5, 6), block=(2, 3), strides=(2, 1), low=(1, 0), high=(0, 1), dilations=(1, 2)),
          floats(2, 18, 9), dynamic=False)


def test_packed_filter() -> None:
    def body(x: Any, w: Any, bias: Any) -> Any:
        y = xt.convolution(x, w, layout="NHWC", filter="OHWIo", low=(1, 1), high=(1, 1))
        return xt.add(y, bias)

    check(body, floats(1, 5, 4, 3), floats(2, 3, 3, 3, 8), floats(16), rtol=1e-4, atol=1e-5, dynamic=False)


def test_sizes_are_scalars() -> None:
    check(lambda x: xt.add(x, xt.convert(xt.dim(value=xt.shape_of(x)[0] * 2), dtype="f32")), floats(3, 5))

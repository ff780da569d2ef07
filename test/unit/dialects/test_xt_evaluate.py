"""evaluate against numpy, onnx's reference and known values; hypothesis over shapes and axes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from xcc import symbolic
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.dialects.xt.numeric import cast
from xcc.dialects.xt.op import InferError

CONTEXT = xt.context()


def run(name, *arrays, **attributes):
    """Builds the op on constants (so that inference is checked with the result) and evaluates it."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            values = [None if a is None else xt.constant(a) for a in arrays]
            out = getattr(xt, name)(*values, **attributes)
            op = (out[0] if isinstance(out, tuple) else out).owner
            groups = xt.grouped_operands(op)
            single = len(groups) == 1 and isinstance(groups[0], tuple)
            results = xt.evaluate(op, *([tuple(arrays)] if single else arrays))
            for value, array in zip(op.operation.results, results, strict=True):
                kind = xt.TensorType.of(value)
                assert kind.shape == array.shape and xt.numpy_dtype(kind.dtype) == array.dtype, f"{name}: {kind}"
            xt.verify(module)
    return results[0] if len(results) == 1 else results


def f32(*values):
    return np.array(values, np.float32)


shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=4, min_side=0, max_side=5)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_broadcasting_is_numpys(pair):
    a, b = (np.arange(int(np.prod(s)), dtype=np.float32).reshape(s) for s in pair.input_shapes)
    np.testing.assert_array_equal(run("add", a, b), a + b)
    assert run("compare", a, b, direction="lt").shape == pair.result_shape


@settings(max_examples=60, deadline=None)
@given(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5), st.data())
def test_negative_axes(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(run("reduce", x, kind="sum", axes=(axis,)), x.sum(axis))
    np.testing.assert_array_equal(run("concatenate", x, x, axis=axis), np.concatenate([x, x], axis))
    np.testing.assert_array_equal(run("arg_reduce", x, kind="argmax", axis=axis, keepdims=True),
                                  x.argmax(axis, keepdims=True))
    np.testing.assert_array_equal(run("gather", x, np.array([-1, 0]), axis=axis), np.take(x, [-1, 0], axis))


@settings(max_examples=40, deadline=None)
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7), st.data())
def test_pad_is_numpys(shape, data):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    most = 3 if mode != "reflect" else min(shape) - 1
    low, high = (data.draw(st.tuples(*[st.integers(0, most)] * len(shape))) for _ in range(2))
    np.testing.assert_array_equal(run("pad", x, low=low, high=high, mode=mode),
                                  np.pad(x, list(zip(low, high, strict=True)), mode=mode))


def test_symbolic_broadcast():
    n, m = symbolic.sym("n"), symbolic.sym("m")
    assert broadcast_shapes((n, 1), (m,)) == (n, m)
    assert broadcast_shapes((n,), (m,)) == (n,)
    assert broadcast_shapes((n,), (7,)) == (7,)
    with pytest.raises(InferError, match="n is not n \\+ 1"):
        broadcast_shapes((n,), (n + 1,))


def test_integer_division_and_remainders():
    a, b = np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)
    assert run("div", a, b).tolist() == [3, -3, -3, 3, 0]
    assert run("rem", a, b).tolist() == [1, -1, 1, -1, 0]
    assert run("mod", a, b).tolist() == [1, 1, -1, -1, 0]
    assert run("div", np.array([200], np.uint8), np.array([7], np.uint8)).tolist() == [28]


def test_float_remainders_follow_the_sign():
    a, b = f32(5.5, -5.5, 5.5), f32(3, 3, -3)
    assert run("rem", a, b).tolist() == [2.5, -2.5, 2.5]
    assert run("mod", a, b).tolist() == [2.5, 0.5, -0.5]


def test_integers_wrap():
    assert run("add", np.array([127], np.int8), np.array([1], np.int8)).tolist() == [-128]
    assert run("mul", np.array([200], np.uint8), np.array([2], np.uint8)).tolist() == [144]
    assert run("pow", np.array([2, -1, 3], np.int32), np.array([10, -3, -1], np.int32)).tolist() == [1024, -1, 0]
    assert run("shift_left", np.array([1, 1], np.uint8), np.array([7, 8], np.uint8)).tolist() == [128, 0]
    assert run("shift_right", np.array([-8, -8], np.int32), np.array([1, 40], np.int32)).tolist() == [-4, -1]


def test_nan_wins_in_maximum_and_reductions():
    assert np.isnan(run("maximum", f32(1, np.nan), f32(np.nan, 1))).all()
    assert np.isnan(run("reduce", f32(1, np.nan), kind="min"))
    assert run("arg_reduce", f32(1, np.nan, 3), kind="argmax", axis=0) == 1


def test_empty_reductions_are_neutral():
    x = np.zeros((0, 3), np.float32)
    assert run("reduce", x, kind="max", axes=(0,)).tolist() == [-np.inf] * 3
    assert run("reduce", x, kind="prod", axes=(0,)).tolist() == [1.0] * 3
    assert run("reduce", x.astype(np.int32), kind="min", axes=(0,)).tolist() == [2**31 - 1] * 3


@pytest.mark.parametrize("value, to, saturate, want", [
    (300.7, "ui8", False, 255), (-1.5, "ui8", False, 0), (np.nan, "i32", False, 0), (-2.7, "i8", False, -2),
    (np.inf, "i64", False, 2**63 - 1), (0.5, "i1", False, True), (1e6, "f8E4M3FN", True, 448.0), (9.7, "i4", False, 7)])
def test_conversion_of_floats(value, to, saturate, want):
    assert cast(f32(value), to, saturate)[0] == want


def test_conversion_of_integers():
    assert cast(np.array([300, -1]), "ui8").tolist() == [44, 255]
    assert cast(np.array([300, -1]), "ui8", True).tolist() == [255, 0]
    assert cast(np.array([9, -9]), "i4").astype(int).tolist() == [-7, 7]


def test_narrow_floats_round_once():
    one, tiny = np.array([1], xt.numpy_dtype("bf16")), np.array([2.0**-9], xt.numpy_dtype("bf16"))
    assert run("add", one, tiny).astype(np.float32).tolist() == [1.0]
    many = np.full(1000, 0.1, np.float16)
    assert abs(float(run("reduce", many, kind="sum")) - 100) < 0.1


def test_top_k_and_sort_keep_the_order_of_equals():
    values, indices = run("top_k", f32(1, 3, 3, 2), k=3)
    assert (values.tolist(), indices.tolist()) == ([3, 3, 2], [1, 2, 3])
    values, indices = run("sort", f32(2, np.nan, 1, 2), axis=0)
    assert indices.tolist() == [2, 0, 3, 1]


def test_scatter():
    x = np.zeros((3, 3), np.float32)
    out = run("scatter_elements", x, np.array([[0, -1, 0]]), f32(1, 2, 3)[None], axis=0)
    assert out.tolist() == [[1, 0, 3], [0, 0, 0], [0, 2, 0]]
    assert run("scatter_nd", np.zeros(4, np.float32), np.array([[1], [1]]), f32(5, 6), reduction="add").tolist() == [
        0, 11, 0, 0]


def test_data_dependent_ops():
    with CONTEXT, ir.Location.unknown():
        for name, arrays, attributes, want in [
                ("nonzero", [f32(0, 2, 0, 3)], {}, [[[1, 3]]]),
                ("unique", [np.array([3, 1, 3])], {"sorted": False}, [[3, 1], [0, 1], [0, 1, 0], [2, 1]]),
                ("compress", [f32(1, 2, 3), np.array([True, False, True])], {}, [[1, 3]])]:
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                out = getattr(xt, name)(*map(xt.constant, arrays), symbol="k", **attributes)
                op = (out[0] if isinstance(out, tuple) else out).owner
                assert "k" in str(xt.TensorType.of(op.results[0]))
                assert [r.tolist() for r in xt.evaluate(op, *arrays)] == want


def test_cumulative():
    x = f32(1, 2, 3)
    assert run("cumulative", x, kind="sum", axis=0, exclusive=True).tolist() == [0, 1, 3]
    assert run("cumulative", x, kind="sum", axis=0, reverse=True).tolist() == [6, 5, 3]
    np.testing.assert_allclose(run("cumulative", x, kind="logsumexp", axis=0), np.logaddexp.accumulate(x), rtol=1e-6)

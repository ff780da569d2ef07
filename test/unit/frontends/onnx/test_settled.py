"""Sizes that are always one number, though their expressions have symbols."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcc.bounds import number
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load
from xcc.symbolic import Dim, dim_max, dim_min, evaluate, floordiv, mod, parse, sym

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import i64, model, node, value

N, M = sym("n"), sym("m")


@pytest.mark.parametrize(("text", "is_always"), [
    ("floordiv(min(3, m) + 2, 3)", 1), ("min(m, 1)", 1), ("k", 4), ("k*min(1, n)", 4), ("min(c, 0)", 0),
    ("floordiv(min(3, c) + 2, 3)", None), ("n", None), ("floordiv(n, 2)", None), ("mod(n, k)", None),
    ("min(1, n)*18014398509481985", None)])     # the last is exact as an integer alone
def test_numbers(text: str, is_always: int | None) -> None:
    d = parse(text)
    assert number({"k": (4, 4), "c": (0, inf)}, d) == (d if is_always is None else is_always)


dims = st.recursive(
    st.one_of(st.integers(-4, 4), st.sampled_from([N, M])),
    lambda d: st.one_of(
        st.tuples(d, d).map(lambda p: p[0] + p[1]), st.tuples(d, d).map(lambda p: p[0] * p[1]),
        st.tuples(d, st.integers(1, 5)).map(lambda p: floordiv(*p)),
        st.tuples(d, st.integers(1, 5)).map(lambda p: mod(*p)),
        st.tuples(d, d).map(lambda p: dim_max(*p)), st.tuples(d, d).map(lambda p: dim_min(*p))), max_leaves=8)


@given(dims, st.integers(2, 3), st.integers(1, 6))
def test_a_number_is_the_value(d: Dim, n: int, m: int) -> None:
    found = number({"n": (2, 3)}, d)
    assert evaluate(found, {"n": n, "m": m}) == evaluate(d, {"n": n, "m": m})


def strided(then: list[Any], **shapes: Any) -> Any:
    """`then` behind t = x[0:3:3] of x: [m]."""
    return model([node("Slice", ["x", "zero", "three", "zero", "three"], ["t"]), *then],
                 [value(k, s) for k, s in {"x": ["m"], **shapes}.items()], [value("z", None)],
                 initializers={"zero": i64(0), "three": i64(3), "two": i64(2)})


def result(m: Any, **inputs: Any) -> Any:
    module, weights = load(m)
    return str(module.body.operations[0].type.results[0]), interpret(module, inputs, weights)[0]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_size_of_one(length: int) -> None:
    x = np.arange(7, 7 + length, dtype=np.float32)
    y = np.array([1, 2], np.float32)
    kind, z = result(strided([node("Add", ["t", "y"], ["z"])], y=[2]), x=x, y=y)
    assert kind == "tensor<2xf32>"
    np.testing.assert_array_equal(z, [8, 9])


def test_a_size_among_numbers() -> None:
    """A size that Min and Div compute is a number for the ops that take it."""
    nodes = [node("Shape", ["x"], ["s"]), node("Min", ["s", "three"], ["a"]), node("Add", ["a", "two"], ["b"]),
             node("Div", ["b", "three"], ["c"]), node("Expand", ["y", "c"], ["z"])]
    m = model(nodes, [value("x", ["m"]), value("y", [2])], [value("z", None)],
              initializers={"three": i64(3), "two": i64(2)})
    kind, z = result(m, x=np.zeros(5, np.float32), y=np.array([1, 2], np.float32))
    assert kind == "tensor<2xf32>"
    np.testing.assert_array_equal(z, [1, 2])


def test_a_count_may_be_zero() -> None:
    """Where nothing is counted, the size is 0 and not 1."""
    nodes = [node("NonZero", ["x"], ["p"]), node("Slice", ["p", "zero", "three", "one", "three"], ["z"])]
    m = model(nodes, [value("x", ["n"])], [value("z", None)],
              initializers={"zero": i64(0), "one": i64(1), "three": i64(3)})
    kind, z = result(m, x=np.zeros(4, np.float32))
    assert "min(" in kind and z.shape == (1, 0)

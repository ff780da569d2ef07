"""Kernels that read an argument and make the value that takes its place, against the numpy meaning of their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled import behind_poison, compare, compiled, examples, filled, module_of, on_chip
from hypothesis import given
from hypothesis import strategies as st
from update_programs import (
    number,
    with_attributes,
    written,
)

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.symbolic import Dim, sym


def descent(p: Any, m: Any, g: Any, v: Any) -> Any:
    """A step of Adam: what is updated is read by one kernel, for all of its results."""
    moment = xt.add(xt.mul(m, number(0.9)), xt.mul(g, number(0.1)))
    square = xt.add(xt.mul(v, number(0.99)), xt.mul(xt.mul(g, g), number(0.01)))
    return xt.sub(p, xt.div(moment, xt.add(xt.sqrt(square), number(1e-3)))), moment, square


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
@pytest.mark.parametrize("shape", [(33, 7), (sym("n"), 5), (4096,), ()])
def test_parameters(shape: tuple[Dim, ...], chip: str) -> None:
    module = with_attributes(module_of(descent, [xt.TensorType(shape, "f32")] * 4), {0: 0, 1: 1, 2: 3})
    with on_chip(chip):
        model = compiled(module)
    sizes = tuple(d if isinstance(d, int) else 67 for d in shape)
    given = [behind_poison(np.random.default_rng(n).uniform(0.1, 1, sizes).astype(np.float32)) for n in range(4)]
    for _ in range(2):
        wanted = interpret(module, [a.copy() for a in given])
        for got, want in zip(model.run({f"x{n}": a for n, a in enumerate(given)}).values(), wanted, strict=True):
            compare(got, want)
    assert written(model) == (1, 3 if chip == "gfx942" else 0)       # whose code takes pointers to differ


STEPS: tuple[Callable[..., Any], ...] = (
    xt.add, xt.mul, lambda x, y: xt.transpose(x, perm=[1, 0]), lambda x, y: xt.add(x, xt.transpose(y, perm=[1, 0])),
    lambda x, y: xt.sub(x, xt.reduce(y, kind="max", axes=(1,), keepdims=True)), lambda x, y: xt.softmax(x, axis=1),
    lambda x, y: xt.reverse(y, axes=[1]), lambda x, y: xt.dot_general(x, y, lhs_contract=[1], rhs_contract=[0]),
    lambda x, y: xt.cumulative(x, kind="sum", axis=0), lambda x, y: xt.concatenate(
        xt.slice(x, starts=(0, 0), limits=(5, 37)), xt.slice(y, starts=(5, 0), limits=(37, 37)), axis=0))


@st.composite
def kernels(draw: Any) -> tuple[Any, dict[int, int]]:
    """A body of ops that read and write elements in many orders, on squares."""
    numbers = st.integers(0, 99)
    steps = [(draw(st.sampled_from(STEPS)), draw(numbers), draw(numbers)) for _ in range(draw(st.integers(1, 4)))]
    picked = [draw(numbers) for _ in range(2)]

    def body(c: Any, d: Any) -> Any:
        there = [c, d]
        for op, a, b in steps:
            there.append(op(there[-1 - a % 2], there[b % len(there)]))
        return tuple(there[-1 - n % min(3, len(there))] for n in picked)

    return body, draw(st.sampled_from([{0: 0}, {0: 1}, {0: 0, 1: 1}]))


def check_kernels(drawn: Any) -> None:
    body, updates = drawn
    module = with_attributes(module_of(body, [xt.TensorType((37, 37), "f32")] * 2), updates)
    given = [filled((37, 37), np.dtype(np.float32), n, -1, 1) for n in range(2)]
    wanted = interpret(module, [a.copy() for a in given])
    for got, want in zip(compiled(module).run({"x0": given[0], "x1": given[1]}).values(), wanted, strict=True):
        compare(got, want, 8)


@given(kernels())
@examples(25)
def test_any_kernel(drawn: Any) -> None:
    check_kernels(drawn)


@given(kernels())
@examples(5)
def test_any_kernel_on_gpus(drawn: Any) -> None:
    with on_chip("sm_90a"):
        check_kernels(drawn)

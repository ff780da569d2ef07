"""What is gathered of normalized rows, and one-hot rows, are what the ops' numpy definitions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel, evaluate

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.cpu.chip import CHIPS

RNG = np.random.default_rng(3)


def rewritten(body: Any, inputs: list[Any], passes: list[str]) -> str:
    """The module behind the passes, which gives what it gave before."""
    module, _ = build_kernel(body, inputs)
    before = evaluate(module, inputs)
    with module.context:
        for name in passes:
            parse_pass(name).run(module, PassContext(chip=CHIPS["x86-64-v3"]))
        assert module.operation.verify()
    for want, found in zip(before, evaluate(module, inputs), strict=True):
        np.testing.assert_array_equal(found, want)
    return str(module)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["log_softmax", "softmax"])
def test_gathers_of_normalized_rows(axis: int, kind: str) -> None:
    def body(x: Value, t: Value) -> list[Value]:
        y = getattr(xt, kind)(x, axis=axis)
        one = {"starts": tuple(3 if d == axis else 0 for d in range(3)), "strides": (1, 1, 1),
               "limits": tuple(5 if d == axis else n for d, n in enumerate(shape))}
        return [xt.gather_elements(y, t, axis=axis), xt.slice(y, **one)]

    shape = tuple(70 if d == axis else d + 2 for d in range(3))
    x = RNG.standard_normal(shape).astype(np.float32)
    t = RNG.integers(-70, 70, tuple(2 if d == axis else n for d, n in enumerate(shape)))
    text = rewritten(body, [x, t], ["xt-decompose", "early-gathers"])
    assert all("%arg0" in line for line in text.splitlines() if "xt.gather_elements" in line or "xt.slice" in line)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_one_hot_rows(axis: int, reduction: str) -> None:
    def body(t: Value, u: Value) -> list[Value]:
        base = xt.broadcast(xt.constant(2, dtype="f32"), shape=shape)
        return [xt.scatter_elements(base, t, u, axis=axis, reduction=reduction)]

    shape = tuple(40 if d == axis else 6 for d in range(2))
    size = tuple(1 if d == axis else 6 for d in range(2))
    t, u = RNG.integers(-40, 40, size), RNG.standard_normal(size).astype(np.float32)
    text = rewritten(body, [t, u], ["one-hot"])
    assert ("xt.scatter_elements" in text) == (reduction == "max")


@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_of_one_hot_rows(keepdims: bool) -> None:
    def body(t: Value, u: Value, r: Value) -> list[Value]:
        base = xt.broadcast(xt.constant(0, dtype="f32"), shape=(3, 40, 2))
        y = xt.mul(r, xt.scatter_elements(base, t, u, axis=1))
        return [y, xt.reduce(y, kind="sum", axes=(1,), keepdims=keepdims)]

    t, u = RNG.integers(-40, 40, (3, 1, 2)), RNG.standard_normal((3, 1, 2)).astype(np.float32)
    text = rewritten(body, [t, u, RNG.standard_normal((1, 2)).astype(np.float32)], ["one-hot"])
    assert "xt.scatter_elements" not in text and "xt.reduce" not in text

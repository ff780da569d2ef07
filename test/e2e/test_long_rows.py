"""Reductions of few long rows in parts, for GPUs: numbers in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import build, compare, compiled, filled, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret

HALF, F32 = np.dtype(np.float16), np.dtype(np.float32)

CASES = {
    "softmax": (lambda x: xt.softmax(x, axis=-1), (2, 40003), F32, 3),
    "layer_norm": (lambda x: xt.layer_norm(x, axes=(-1,)), (1, 32768), HALF, 3),
    "sum_of_all": (lambda x: xt.reduce(x, kind="sum", axes=(0, 1), keepdims=False), (30, 1111), F32, 2),
    "most": (lambda x: xt.reduce(x, kind="max", axes=(1,), keepdims=True), (3, 20480), np.dtype(np.int32), 2),
    "argmax": (lambda x: xt.arg_reduce(x, kind="argmax", axis=1), (2, 40003), HALF, 3),
    "last_argmin": (lambda x: xt.arg_reduce(x, kind="argmin", axis=1, select_last=True, keepdims=True), (3, 20480),
                    np.dtype(np.int32), 3),
    "all": (lambda x: xt.reduce(x, kind="and", axes=(1,), keepdims=False), (2, 20480), np.dtype(bool), 2),
}


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("case", CASES)
def test_parts(case: str, chip: str) -> None:
    body, shape, dtype, launches = CASES[case]
    x = filled(shape, dtype, 1, -1, 1)
    module = build(body, [x])
    (want,) = interpret(module, [x])
    with on_chip(chip):
        model: Any = compiled(module)
    (kernel,) = model.artifact.manifest["kernels"]
    assert len(kernel["entries"]) == launches
    (got,) = model.run({"x0": x}).values()
    compare(got, want, 2.0)


def test_beside_others() -> None:
    """Long rows keep launches of their own where short ones share one."""
    inputs = [filled((1, 20480), F32, 1), filled((2, 100), F32, 2), filled((3, 50), F32, 3)]
    module = build(lambda *v: tuple(xt.softmax(x, axis=-1) for x in v), inputs)
    want = interpret(module, inputs)
    with on_chip("sm_90a"):
        model: Any = compiled(module)
    assert sorted(len(k["entries"]) for k in model.artifact.manifest["kernels"]) == [1, 3]
    got = model.run({f"x{n}": x for n, x in enumerate(inputs)})
    for g, w in zip(got.values(), want, strict=True):
        compare(g, w)

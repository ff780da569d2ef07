"""Reductions of a product's rows in the product's kernel on GPUs: numbers in the interpreter, how many kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import BF16, build, compare, compiled, filled, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret

CHIPS = ("sm_80", "sm_90a", "gfx942", "gfx1100")
HALF = np.dtype(np.float16)


def linear(x: Any, w: Any) -> Any:
    return xt.dot_general(x, w, lhs_contract=(len(xt.shape_of(x)) - 1,), rhs_contract=(0,))


def softmax(x: Any, w: Any, b: Any) -> Any:
    return xt.softmax(xt.add(linear(x, w), b), axis=-1)


def norm(x: Any, w: Any, b: Any, r: Any) -> Any:
    """What goes on past the norm is stored too."""
    y = xt.add(xt.add(linear(x, w), b), r)
    return xt.layer_norm(y, b, b, axes=(-1,)), y


def heads(x: Any, w: Any) -> Any:
    """Norms of each head: [rows, heads, features]."""
    return xt.rms_norm(linear(x, w), axes=(-1,))


CASES = {
    "softmax": (softmax, [(130, 48), (48, 96), (96,)], HALF),
    "softmax_few_columns": (softmax, [(3, 33, 40), (40, 10), (10,)], HALF),
    "softmax_f32": (softmax, [(70, 33), (33, 50), (50,)], np.dtype(np.float32)),
    "norm": (norm, [(100, 64), (64, 256), (256,), (100, 256)], HALF),
    "norm_bf16": (norm, [(2, 40, 64), (64, 72), (72,), (2, 40, 72)], BF16),
    "heads": (heads, [(70, 32), (32, 3, 64)], HALF),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("case", CASES)
def test_one_kernel(case: str, chip: str) -> None:
    body, shapes, dtype = CASES[case]
    inputs = [filled(s, dtype, n, -1, 1) for n, s in enumerate(shapes)]
    module = build(body, inputs)
    want = interpret(module, inputs)
    with on_chip(chip):
        model = compiled(module)
    assert len(model.artifact.manifest["kernels"]) == 1
    got = model.run({f"x{i}": a for i, a in enumerate(inputs)})
    for g, w in zip(got.values(), want, strict=True):
        compare(g, w, 2.0)


@pytest.mark.parametrize("rows, columns, terms", [(64, 64, 4096), (64, 320, 64)])
def test_not_where_it_costs(rows: int, columns: int, terms: int) -> None:
    """Few rows with long sums, and rows that are too long, are two kernels or more."""
    inputs = [filled(s, HALF, n, -1, 1) for n, s in enumerate([(rows, terms), (terms, columns), (columns,)])]
    with on_chip("sm_90a"):
        model = compiled(build(softmax, inputs))
    assert len(model.artifact.manifest["kernels"]) > 1

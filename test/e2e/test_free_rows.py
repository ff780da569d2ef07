"""Reductions along rows whose length only a run knows: short rows have a lane each, long ones lanes along them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import Array, build, check, compare, compiled, fenced, filled

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret

F32, HALF = np.dtype(np.float32), np.dtype(np.float16)
LENGTHS = (0, 1, 2, 7, 8, 15, 16, 40, 127, 130)


def moments(x: Any, s: Any) -> Any:
    return xt.layer_norm(xt.mul(x, s), axes=(-1,), eps=0.01), xt.reduce(x, kind="sum", axes=(-1,))


CASES = {
    "softmax": (lambda x, s: xt.softmax(xt.mul(x, s), axis=-1), F32),
    "half": (lambda x, s: xt.log_softmax(xt.mul(x, s), axis=-1), HALF),
    "moments": (moments, F32),
    "most": (lambda x, s: (xt.reduce(x, kind="max", axes=(-1,)), xt.arg_reduce(x, kind="argmax", axis=-1)), F32),
}


@pytest.mark.parametrize("case", CASES)
def test_lengths(case: str) -> None:
    """Chunks not filled, one row, rows of no elements where that means something, NaN."""
    body, dtype = CASES[case]
    shapes = [((3, rows, n), (n,)) for rows, n in zip((5, 299, 17, 2, 33, 9, 33, 33, 1, 3), LENGTHS, strict=True)
              if n or case == "softmax"]
    inputs: list[tuple[Array, ...]] = [tuple(filled(s, dtype, i) for i, s in enumerate(pair)) for pair in shapes]
    inputs[2][0][1, 3 % inputs[2][0].shape[1]] = np.nan
    model = compiled(build(body, [filled(s, dtype) for s in ((4, 5, 7), (7,))], True))
    for given in inputs:
        want = interpret(build(body, given), given)
        got = model.run({f"x{i}": fenced(a) for i, a in enumerate(given)})
        for g, w in zip(got.values(), want, strict=True):
            compare(g, w, 4.0)


def test_images() -> None:
    """All pixels of an image are a row."""
    def body(x: Any) -> Any:
        most = xt.reduce(x, kind="max", axes=(2, 3), keepdims=True)
        return most, xt.reduce(xt.abs(x), kind="sum", axes=(2, 3)), xt.mul(xt.sub(x, most), x)

    model = compiled(build(body, [filled((3, 4, 5, 7), F32)], True))
    for shape in ((1, 5, 7, 7), (3, 33, 3, 1), (2, 9, 1, 4), (4, 1, 20, 9), (2, 3, 13, 11), (1, 17, 1, 1)):
        x = filled(shape, F32, 1)
        for g, w in zip(model.run({"x0": fenced(x)}).values(), interpret(build(body, [x]), [x]), strict=True):
            compare(g, w, 4.0)


@pytest.mark.parametrize("case", ["softmax", "moments"])
@pytest.mark.parametrize("shape", [(37, 3), (3, 17, 5), (40, 8)])
def test_known_lengths(case: str, shape: tuple[int, ...]) -> None:
    """Tiles of short rows, the last of which is not filled; a dim that another operand does not have."""
    x, s = filled(shape, F32, 1, -9, 9), filled((*shape[:-2], 1, shape[-1]), F32, 2)
    x[..., 1, 2] = -np.inf if case == "softmax" else 0
    check(CASES[case][0], x, s, tolerance=4)

"""Boxes that overlap: the loop kernel and what GPUs make of them give what the op's numpy definition gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel, check

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.nvptx.chip import chips

RNG = np.random.default_rng(5)


def operands(n: int, most: int, overlap: float, least: float | None, dtype: Any = np.float32) -> list[Any]:
    """Boxes of two images, some of them empty, and scores of three classes with ties and NaN."""
    low, size = RNG.uniform(0, 30, (2, n, 2)), RNG.uniform(0, 20, (2, n, 2))
    size[:, ::7] = 0
    scores = RNG.integers(0, 20, (2, 3, n)) / 20
    scores[:, 1, ::5] = np.nan
    limits = [np.array(v, t) for v, t in ((most, np.int64), (overlap, dtype), (least, dtype)) if v is not None]
    return [np.concatenate([low, low + size], 2).astype(dtype), scores.astype(dtype), *limits]


CASES = [(40, 40, 0.3, None), (40, 4, 0.5, 0.4), (33, 0, 0.5, None), (25, 99, 0.0, 0.1), (1, 1, 0.5, 2.0),
         (20, 20, 1.0, None)]


@pytest.mark.parametrize("case", CASES)
def test_loops(case: Any) -> None:
    check(xt.best_boxes, *operands(*case), dynamic=False)


def test_doubles() -> None:
    check(xt.best_boxes, *operands(30, 9, 0.4, 0.2, np.float64), dynamic=False)


@pytest.mark.parametrize("case", CASES)
def test_pairs(case: Any) -> None:
    values = operands(*case)
    module, _ = build_kernel(xt.best_boxes, values)
    want = interpret(module, values, function="k")[0]
    with module.context:
        parse_pass("box-pairs").run(module, PassContext(chip=chips()["sm_90a"]))
        assert module.operation.verify()
    assert "xt.best_boxes" not in str(module)
    np.testing.assert_array_equal(interpret(module, values, function="k")[0], want)

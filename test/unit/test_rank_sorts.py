"""Sorting by counting gives what the ops' numpy definitions give: order, ties, NaN, infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel, evaluate

from xcc.dialects import xt
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.nvptx.chip import chips

RNG = np.random.default_rng(3)


def ranked(body: Any, x: Any) -> tuple[list[Any], list[Any], str]:
    """Results before and after the pass, and the module after it."""
    module, _ = build_kernel(body, [x])
    before = evaluate(module, [x])
    with module.context:
        parse_pass("rank-sorts").run(module, PassContext(chip=chips()["sm_90a"]))
        assert module.operation.verify()
    return before, evaluate(module, [x]), str(module)


def numbers(*shape: int) -> Any:
    """Many ties, both infinities and NaN."""
    x = RNG.integers(-20, 20, shape).astype(np.float32)
    flat = x.reshape(-1)
    flat[3::17], flat[5::29], flat[7::31] = np.nan, np.inf, -np.inf
    return x


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape, axis", [((100,), 0), ((3, 65), 1), ((2, 40, 3), 1)])
def test_sort(shape: tuple[int, ...], axis: int, descending: bool) -> None:
    before, after, text = ranked(lambda x: xt.sort(x, axis=axis, descending=descending), numbers(*shape))
    assert "xt.sort" not in text and text.count('"xt.reduce"') == 2
    for want, found in zip(before, after, strict=True):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint8, np.int64])
def test_top_k(kind: Any, largest: bool) -> None:
    x = numbers(4, 70) if kind is np.float32 else RNG.integers(0, 50, (4, 70)).astype(kind)
    before, after, text = ranked(lambda x: xt.top_k(x, k=9, axis=1, largest=largest), x)
    assert "xt.top_k" not in text
    for want, found in zip(before, after, strict=True):
        np.testing.assert_array_equal(found, want)


def test_short_rows_and_rows_for_every_thread_stay() -> None:
    for shape in ((4, 32), (2_000_000, 64)):
        module, _ = build_kernel(lambda x: xt.sort(x, axis=1), [np.empty(shape, np.float32)])
        with module.context:
            parse_pass("rank-sorts").run(module, PassContext(chip=chips()["sm_90a"]))
        assert "xt.sort" in str(module)

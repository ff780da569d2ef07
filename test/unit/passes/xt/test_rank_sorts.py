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


def merged(body: Any, x: Any) -> tuple[list[Any], list[Any], str]:
    module, _ = build_kernel(body, [x])
    before = evaluate(module, [x])
    with module.context:
        parse_pass("merge-sorts").run(module, PassContext(chip=chips()["sm_90a"]))
        assert module.operation.verify()
    return before, evaluate(module, [x]), str(module)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape, axis", [((2, 9000), 1), ((5000, 3), 0)])
def test_long_sorts_are_merges(shape: tuple[int, ...], axis: int, descending: bool) -> None:
    before, after, text = merged(lambda x: xt.sort(x, axis=axis, descending=descending), numbers(*shape))
    assert "xt.sort\"" not in text and "xt.merge_runs" in text
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 33, 100])
def test_runs_of_top_k_keep_no_more_than_they_must(k: int, largest: bool) -> None:
    before, after, text = merged(lambda x: xt.top_k(x, k=k, axis=1, largest=largest), numbers(3, 9001))
    assert "xt.top_k" not in text and f"tensor<3x{max(16, 1 << (k - 1).bit_length())}xi32>" in text
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "uint16", "uint32", "int64", "uint64"])
def test_merges_keep_the_order_of_every_type(kind: str) -> None:
    x = np.resize(numbers(999), 9000).astype(kind) if kind.startswith("float") else \
        RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, 9000, np.dtype(kind), endpoint=True)
    x[::13] = -np.zeros(1, kind)
    for descending in (False, True):
        before, after, text = merged(lambda x: xt.sort(x, axis=0, descending=descending), x)  # noqa: B023
        assert "xt.merge_runs" in text
        for a, b in zip(after, before, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape, axis", [((300, 40), 0), ((3, 4096), 1), ((2, 500, 3), 1)])
def test_rows_that_fit_a_workgroup_are_sorted_by_one(shape: tuple[int, ...], axis: int) -> None:
    before, after, text = merged(lambda x: xt.top_k(x, k=100, axis=axis), numbers(*shape))
    assert "xt.sort_rows" in text and "xt.top_k" not in text and "xt.merge_runs" not in text
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_few_elements_are_sorted_by_counting() -> None:
    for size in (16, 300):
        assert "xt.sort_r" not in merged(lambda x: xt.sort(x, axis=0), numbers(size))[2]

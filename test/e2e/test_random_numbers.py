"""Random numbers whose seed and offset are values of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import compare, compiled, module_of, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.random import philox
from xcc.symbolic import sym

SCALAR, VECTOR = xt.TensorType((), "i64"), xt.TensorType((1,), "i64")


def mask(x: Any, seed: Any, offset: Any) -> Any:
    """Dropout: elements are dropped where a number of theirs is small."""
    noise = xt.random_uniform(seed, offset, shape=xt.shape_of(x))
    keep = xt.compare(noise, xt.constant(np.float32(0.25)), direction="ge")
    normal = xt.random_normal(seed, None, shape=xt.shape_of(x))
    return xt.select(keep, x, xt.constant(np.float32(0))), noise, normal


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
def test_a_run_draws_by_its_seed_and_offset(chip: str) -> None:
    module = module_of(mask, [xt.TensorType((sym("n"), 6), "f32"), SCALAR, VECTOR])
    with on_chip(chip):
        model = compiled(module)
    x = np.ones((5, 6), np.float32)
    seen = []
    for seed, offset in ((3, 0), (3, 1), (4, 0), (3, 0), (-(1 << 62), (1 << 62) + 3)):
        given = [x, np.int64(seed), np.array([offset])]
        outputs = [*model.run({f"x{n}": a for n, a in enumerate(given)}).values()]
        for got, want in zip(outputs, interpret(module, given), strict=True):
            compare(got, want)
        seen.append(outputs[1])
    np.testing.assert_array_equal(seen[0], seen[3])
    assert len({a.tobytes() for a in seen}) == 4


def test_words_are_those_of_the_paper() -> None:
    """Known answers of Random123 for Philox 4x32-10: counter and key of zeros."""
    first, second = philox(1, 0)
    assert (int(first[0]), int(second[0])) == (0x6627E8D5, 0xE169C58D)


def test_numbers_are_spread_evenly() -> None:
    words = np.concatenate([philox(1 << 12, 7, offset)[0] for offset in range(16)])
    counts = np.bincount((words >> np.uint64(28)).astype(np.int64), minlength=16)
    assert abs(counts - len(words) / 16).max() < 5 * np.sqrt(len(words) / 16)

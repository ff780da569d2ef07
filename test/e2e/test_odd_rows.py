"""Walks over rows that begin anywhere within words, on GPUs: numbers in the interpreter, words in the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import build, compare, compiled, filled, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret

HALF, BF16, FULL = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
Case = tuple[Callable[..., Any], tuple[int, ...], Any, bool]


def wider(x: Any) -> Any:
    return xt.log_softmax(xt.convert(x, dtype="f32"), axis=-1)


CASES: dict[str, Case] = {     # arrays end with a word, or within one; sizes are known, or free
    "softmax": (lambda x: xt.softmax(x, axis=-1), (8, 16643), HALF, False),
    "log_softmax": (lambda x: xt.log_softmax(x, axis=-1), (3, 16517), BF16, False),
    "argmax": (lambda x: xt.arg_reduce(x, kind="argmax", axis=1), (5, 16386), HALF, False),
    "last_words": (lambda x: xt.softmax(x, axis=-1), (4, 3 * 8192 - 3), HALF, False),     # some rows take a step more
    "to_wider": (wider, (3, 16389), HALF, False),
    "words": (lambda x: xt.softmax(x, axis=-1), (3, 16387), FULL, False),
    "deep": (lambda x: xt.reduce(x, kind="sum", axes=(2,), keepdims=False), (2, 3, 16389), HALF, False),
    "free": (lambda x: xt.log_softmax(x, axis=-1), (3, 1029), HALF, True),
    "free_short": (lambda x: xt.softmax(x, axis=-1), (7, 5), HALF, True),
    "free_whole": (lambda x: xt.log_softmax(x, axis=-1), (4, 2048), BF16, True),
    "free_words": (lambda x: xt.softmax(x, axis=-1), (3, 1027), FULL, True),
}


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("case", CASES)
def test_numbers(case: str, chip: str) -> None:
    body, shape, dtype, free = CASES[case]
    x = filled(shape, dtype, 1, -1, 1)
    module = build(body, [x], dynamic=free)
    (want,) = interpret(module, [x])
    with on_chip(chip if free else f"{chip},cores=1"):      # more cores take parts of few rows
        model: Any = compiled(module)
    (got,) = model.run({"x0": x}).values()
    compare(got, want, 2.0)
    code = "".join(bytes(text).decode() for name, text in model.artifact.members.items() if name.endswith(".mlir"))
    assert re.search(r"vector\.load .*vector<(8xb?f16|4xf32)>", code)

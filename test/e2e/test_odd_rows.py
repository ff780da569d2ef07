"""Rows that begin anywhere within words, on GPUs: numbers in the interpreter, words in the code."""

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
Case = tuple[Callable[..., Any], list[tuple[tuple[int, ...], Any]], bool]


def added_rows(x: Any, b: Any) -> Any:
    return xt.add(x, b)


def without_ends(x: Any) -> Any:
    return xt.neg(xt.slice(x, starts=(0, 3), limits=(7, 1200), strides=(1, 1)))


CASES: dict[str, Case] = {     # the array ends with a word, within one, or rows are free; a loop along rows, or none
    "softmax_walked": (lambda x: xt.softmax(x, axis=-1), [((8, 16643), HALF)], False),
    "log_softmax_cut": (lambda x: xt.log_softmax(x, axis=-1), [((3, 16517), BF16)], False),
    "sum": (lambda x: xt.reduce(x, kind="sum", axes=(1,), keepdims=False), [((3, 2051), HALF)], False),
    "argmax": (lambda x: xt.arg_reduce(x, kind="argmax", axis=1), [((5, 16386), HALF)], False),
    "of_a_warp": (lambda x: xt.softmax(x, axis=-1), [((37, 197), HALF)], False),
    "norm": (lambda x, w: xt.rms_norm(x, w, axes=(-1,)), [((5, 1027), BF16), ((1027,), BF16)], False),
    "bias": (added_rows, [((33, 515), HALF), ((515,), HALF)], False),
    "slice": (without_ends, [((7, 1204), HALF)], False),
    "free_rows": (lambda x: xt.softmax(x, axis=-1), [((3, 2053), HALF)], True),
    "free_rows_of_words": (lambda x: xt.log_softmax(x, axis=-1), [((4, 2048), BF16)], True),
    "walked_to_wider": (lambda x: xt.log_softmax(xt.convert(x, dtype="f32"), axis=-1), [((3, 16389), HALF)], False),
    "walked_words": (lambda x: xt.softmax(x, axis=-1), [((3, 16387), FULL)], False),
    "free_walked": (lambda x: xt.log_softmax(x, axis=-1), [((3, 1029), HALF)], True),
    "free_words": (lambda x: xt.softmax(x, axis=-1), [((3, 1027), FULL)], True),
    "free_bias": (added_rows, [((5, 517), HALF), ((517,), HALF)], True),
}


WHOLE_CHIP = ("free_walked", "free_words")      # has tiles of one row; of few cores rows are many, and short


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("case", CASES)
def test_numbers(case: str, chip: str) -> None:
    body, given, free = CASES[case]
    inputs = [filled(shape, dtype, n, -1, 1) for n, (shape, dtype) in enumerate(given)]
    module = build(body, inputs, dynamic=free)
    (want,) = interpret(module, inputs)
    with on_chip(chip if case in WHOLE_CHIP else f"{chip},cores=1"):
        model: Any = compiled(module)
    (got,) = model.run({f"x{n}": x for n, x in enumerate(inputs)}).values()
    compare(got, want, 2.0)
    code = "".join(bytes(text).decode() for name, text in model.artifact.members.items() if name.endswith(".mlir"))
    assert re.search(r"vector\.load .*vector<(8xb?f16|4xf32)>", code)

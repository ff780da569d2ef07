"""Ranks that are found by halving are those of a sort: NaN last, infinities, both zeros, ties."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linalg_cases import build_kernel, evaluate

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.cpu.chip import CHIPS

RNG = np.random.default_rng(3)
KINDS = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int16, np.int32, np.int64]


def numbers(kind: Any, *shape: int) -> Any:
    """Of all sizes, with ties; of floats both infinities, zeros and NaN."""
    if not np.issubdtype(kind, np.integer):
        x = (RNG.integers(-40, 40, shape) * 10.0**RNG.integers(-3, 4, shape)).astype(kind)
        flat = x.reshape(-1)
        flat[3::17], flat[5::29], flat[7::31], flat[2::41] = np.nan, np.inf, -np.inf, -0.0
        return x
    limits = np.iinfo(kind)
    return RNG.integers(limits.min, limits.max, shape, kind, endpoint=True)


def rank_of(x: Value, k: int, axis: int) -> list[Value]:
    """The k-th of each sorted row and its place, by slices of a sort."""
    shape = [int(str(d)) for d in xt.shape_of(x)]
    starts = tuple(k if d == axis else 0 for d in range(len(shape)))
    limits = tuple(k + 1 if d == axis else n for d, n in enumerate(shape))
    return [xt.slice(v, starts=starts, limits=limits, strides=(1,) * len(shape)) for v in xt.sort(x, axis=axis)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 20, 300, 470, 511])
def test_sliced(kind: Any, k: int) -> None:
    x = numbers(kind, 2, 512, 2)
    module, _ = build_kernel(lambda x: rank_of(x, k, 1), [x])
    (want, _) = evaluate(module, [x])
    with module.context:
        parse_pass("halved-ranks").run(module, PassContext(chip=CHIPS["x86-64-v3"]))
        assert module.operation.verify()
    (values, places) = evaluate(module, [x])
    for found in (values, np.take_along_axis(x, places, 1)):
        np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))

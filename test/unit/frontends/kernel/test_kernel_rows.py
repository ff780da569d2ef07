"""Products whose left operands are read where they lie, and those that are copied instead, on a CPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xcc


@xcc.kernel
def product(a: Any, b: Any, c: Any, PLANES: xcc.constexpr) -> None:
    """c = a @ b; `a` is a matrix, or the second plane of several."""
    row, acc = xcc.program_id(0) * 32, xcc.zeros((32, 32), c.dtype)
    for k in range(0, a.shape[-1], 32):
        left = a.tile((1, row, k), (1, 32, 32), other=0).reshape((32, 32)) if PLANES \
            else a.tile((row, k), (32, 32), other=0)
        acc = xcc.dot(left, b.tile((k, 0), (32, 32), other=0), acc)
    c.store((row, 0), acc)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("planes", [False, True])
def test_left_operands(dtype: str, planes: bool) -> None:
    """Tiles inside the buffer and across its ends, of rows that follow each other and of rows far apart."""
    rng = np.random.default_rng(2)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for rows, k, width, first in ((70, 75, 75, 0), (64, 64, 64, 0), (40, 64, 2048, 3), (33, 70, 91, 7), (3, 5, 5, 0)):
        base, b = (rng.integers(-4, 5, s).astype(kind) for s in ((2, rows, width), (k, 32)))
        a = base[..., first:first + k]
        c = np.zeros((rows, 32), np.int32 if dtype == "int8" else np.float32)
        product[(-(-rows // 32),)](a if planes else a[1], b, c, PLANES=planes)
        np.testing.assert_array_equal(c, a[1].astype(np.float64) @ b.astype(np.float64))

"""Products of left operands whose columns lie side by side in memory, and of right ones whose rows do, on a CPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xcc


@xcc.kernel
def product(a: Any, b: Any, c: Any, HOW: xcc.constexpr, M: xcc.constexpr, K: xcc.constexpr) -> None:
    """c = a @ b: `a` as it lies, its transpose, or a transpose of what is computed."""
    row, rows = xcc.program_id(0) * M, c.shape[0]
    acc = xcc.zeros((M, 32), c.dtype)
    for k in range(0, b.shape[0], K):
        if HOW == "array":
            left = a.tile((row, k), (M, K), other=0)
        else:
            left = a.tile((k, row), (K, M), other=0)
            left = left.T if HOW == "tile" else (left + left.max(axis=0, keepdims=True) * 0).T
        left = xcc.where((row + xcc.arange(M) < rows)[:, None], left, 0)
        acc = xcc.dot(left, b.tile((k, 0), (K, 32), other=0), acc)
    c.store((row, 0), acc)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("how", ["array", "tile", "computed"])
def test_turned_left_operands(dtype: str, how: str) -> None:
    kind, total = np.dtype(getattr(ml_dtypes, dtype, dtype)), np.int32 if dtype == "int8" else np.float32
    rng = np.random.default_rng(0)
    for m, k, tile in ((70, 45, (64, 16)), (5, 33, (32, 32)), (17, 1, (16, 16)), (9, 40, (8, 16))):
        a, b = (rng.integers(-4, 5, s).astype(kind) for s in ((k, m), (k, 20)))
        c = np.zeros((m, 20), total)
        product[(-(-m // tile[0]),)](a.T if how == "array" else a, b, c, HOW=how, M=tile[0], K=tile[1])
        np.testing.assert_array_equal(c, a.T.astype(np.float64) @ b.astype(np.float64))


@xcc.kernel
def by_rows(a: Any, b: Any, c: Any, HOW: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr) -> None:
    """c = a @ b.T: `b.T` is a view, a tile turned, or computed before it is turned."""
    column, acc = xcc.program_id(0) * N, xcc.zeros((16, N), c.dtype)
    for k in range(0, a.shape[1], K):
        if HOW == "array":
            right = b.tile((k, column), (K, N), other=0)
        else:
            right = b.tile((column, k), (N, K), other=0)
            right = right.T if HOW == "tile" else (right + right).T
        acc = xcc.dot(a.tile((0, k), (16, K), other=0), right, acc)
    c.store((0, column), acc)


@pytest.mark.parametrize(("how", "dtype"), [
    ("array", "float32"), ("computed", "bfloat16"), *[("tile", d) for d in ("float32", "float16", "int8", "float64")]])
def test_turned_right_operands(how: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    total = {"int8": np.int32, "float64": np.float64}.get(dtype, np.float32)
    for n, k, tile in ((70, 150, (64, 64)), (33, 64, (32, 32)), (9, 5, (8, 8))):
        a, b = (rng.integers(-4, 5, s).astype(kind) for s in ((11, k), (n, k)))
        c = np.zeros((11, n), total)
        by_rows[(-(-n // tile[0]),)](a, b.T if how == "array" else b, c, HOW=how, N=tile[0], K=tile[1])
        np.testing.assert_array_equal(c, (1 + (how == "computed")) * (a.astype(np.float64) @ b.T.astype(np.float64)))


def test_forms_of_strides() -> None:
    """Where neighbours of a strided array lie is part of the form; dims of one element say nothing."""
    b, c = np.ones((4, 20), np.float32), np.zeros((8, 20), np.float32)
    columns, apart = np.ones((4, 8), np.float32).T, np.ones((8, 8), np.float32)[:, ::2]
    for a in (columns, apart, np.ones((4, 32), np.float32)[:, ::4].T):
        c[:] = 0
        product[(1,)](a, b, c, HOW="array", M=8, K=16)
        assert (c == 4).all()
    forms = [str(form) for form in product.specialisations]
    for layout in ("strided f32[?, ?] along dim 0, b", "strided f32[?, ?], b"):
        assert sum(f"a: {layout}" in form for form in forms) >= 1

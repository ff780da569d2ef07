"""Products of which few rows or columns are stored, and others that are read past what is stored, on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcc

BLOCK, DEPTH = 64, 32


@xcc.kernel
def stored_parts(a: Any, b: Any, wide: Any, short: Any, USE: xcc.constexpr) -> None:
    """What is stored of a product that goes on with ones behind the ends of `a` and `b`: `wide` has the most of it."""
    t = xcc.zeros((BLOCK, BLOCK), xcc.f32)
    for k in range(0, a.shape[1], DEPTH):
        t = xcc.dot(a.tile((0, k), (BLOCK, DEPTH), other=1), b.tile((k, 0), (DEPTH, BLOCK), other=1), t)
    t = xcc.dot(xcc.full((BLOCK, 16), 0.5, xcc.f32), xcc.full((16, BLOCK), 0.5, xcc.f32), t)
    wide.store((0, 0), t)
    if USE == "both":
        short.store((0, 0), t * 2.0)
    if USE == "sum of rows":
        short.store((0, 0), t.sum(axis=0, keepdims=True))
    if USE == "sum of columns":
        short.store((0, 0), (t - t.sum(axis=1, keepdims=True))[:, :])
    if USE == "chosen":
        chosen = xcc.where((xcc.arange(BLOCK) + a.shape[1] // 25 < a.shape[1])[None, :], t, 1.0)
        short.store((0, 0), chosen.sum(axis=1, keepdims=True))
    if USE == "chosen rows":
        chosen = xcc.where((xcc.arange(BLOCK) < b.shape[1])[:, None], t, 1.0)
        short.store((0, 0), chosen.sum(axis=0, keepdims=True))
    if USE == "product":
        short.store((0, 0), xcc.dot(t, t.T))
    if USE == "places":
        short.scatter((xcc.arange(BLOCK)[:, None] // 32, xcc.zeros((1, 1), xcc.i64)), t.max(axis=1, keepdims=True),
                      mask=xcc.arange(BLOCK)[:, None] % 32 == 0)


def _meaning(use: str, t: Any, columns: int) -> Any:
    at = np.arange(BLOCK)
    return {"chosen": np.where(at < 48, t, 1).sum(1, keepdims=True),
            "chosen rows": np.where(at[:, None] < columns, t, 1).sum(0, keepdims=True),
            "both": 2 * t, "sum of rows": t.sum(0, keepdims=True), "sum of columns": t - t.sum(1, keepdims=True),
            "product": t @ t.T, "places": t.max(1, keepdims=True)[::32]}[use]


@pytest.mark.parametrize("use", ["both", "sum of rows", "sum of columns", "product", "places", "chosen",
                                 "chosen rows"])
def test_parts_of_products(use: str) -> None:
    """Rows and columns behind the end of what is stored count where others are computed of them."""
    rng = np.random.default_rng(0)
    for rows, columns, short in ((1, 40, (64, 64)), (37, 3, (2, 50)), (64, 33, (1, 64)), (13, 64, (30, 1)),
                                 (60, 64, (49, 9))):
        a, b = (rng.integers(-3, 4, s).astype(np.float32) for s in ((rows, 50), (50, columns)))
        whole = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
        whole[0][:rows, :50], whole[1][:50, :columns] = a, b
        t = whole[0] @ whole[1] + 4
        wide, other = np.zeros((rows, columns), np.float32), np.zeros(short, np.float32)
        stored_parts[(1,)](a, b, wide, other, USE=use)
        np.testing.assert_array_equal(wide, t[:rows, :columns])
        wanted = np.zeros(short, np.float32)
        part = _meaning(use, t, columns)[:short[0], :short[1]]
        wanted[:part.shape[0], :part.shape[1]] = part
        np.testing.assert_array_equal(other, wanted)

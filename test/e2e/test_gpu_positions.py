"""Writes at computed positions on GPUs, where many threads share the work, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import check, filled, on_chip

from xcc.dialects import xt


@pytest.mark.parametrize("chip", ["sm_80", "gfx1100"])
def test_what_is_chosen_is_stored_by_the_thread_that_sees_it(chip):
    x, c = filled((7, 30), "float32"), filled((90,), "bool", 1)
    y = filled((3, 90, 2), "float16", 2)
    x[np.abs(x) < 1] = 0

    def both(a, b, d):
        return (xt.nonzero(a, symbol="found"), xt.compress(d, b, axis=1, symbol="kept"),
                xt.compress(d, b, axis=0, flat=True, symbol="flat"))

    with on_chip(chip):
        check(both, x, c, y)


@pytest.mark.parametrize("kind", ["none", "add", "max"])
@pytest.mark.parametrize("chip", ["sm_80", "gfx942"])
def test_equal_positions_keep_their_order(chip, kind):
    x, u = filled((40, 3), "float32"), filled((60, 3), "float32", 1)
    rows, updates = filled((5, 6, 4), "float32", 2), filled((50, 4), "float32", 3)
    rng = np.random.default_rng(4)
    i, j = rng.integers(-40, 40, (60, 3)), np.stack([rng.integers(-5, 5, 50), rng.integers(0, 6, 50)], 1)

    def both(x, i, u, rows, j, updates):
        return (xt.scatter_elements(x, i, u, axis=0, reduction=kind), xt.scatter_nd(rows, j, updates, reduction=kind))

    with on_chip(chip):
        check(both, x, i, u, rows, j, updates)


def test_places_of_symbolic_sizes():
    x, u, i = filled((40, 3), "float32"), filled((37, 3), "float32", 1), filled((37,), "int64", 2) * 5

    def both(x, i, u):
        vectors = xt.reshape(i, shape=(*xt.shape_of(i), 1))
        wide = xt.add(xt.reshape(i, shape=(*xt.shape_of(i), 1)), xt.constant(np.array([[0, 1, 2]])))
        return xt.scatter_nd(x, vectors, u), xt.scatter_elements(x, wide, u, axis=0)

    with on_chip("sm_80"):
        check(both, x, i, u, dynamic=True)


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
def test_columns_read_at_places_of_their_own(chip):
    x, i = filled((9, 64), "float32"), np.random.default_rng(2).integers(0, 9, (5, 64)).astype("int32")
    table = np.random.default_rng(3).integers(0, 9, (1, 64))
    with on_chip(chip):
        check(lambda x, i: (xt.gather_elements(x, i, axis=0), xt.gather_elements(x, xt.constant(table), axis=0)), x, i)


@pytest.mark.parametrize("chip", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_runs_are_sorted_and_merged(chip, kind):
    def merges(x, y, i):
        return (*xt.sort_runs(x, run=16), *xt.merge_runs(y, i, run=16, ways=2, keep=32),
                *xt.merge_runs(y, i, run=16, ways=4, keep=16), *xt.merge_runs(y, i, run=16, ways=8, keep=128))

    x = np.random.default_rng(1).integers(-9, 9, (2, 75)).astype(kind)
    x[0, ::7], x[1, ::5] = np.iinfo(kind).max, np.iinfo(kind).min
    y = np.concatenate([np.sort(x[:, s:s + 16], 1) for s in range(0, 75, 16)], 1)
    with on_chip(chip):
        check(merges, x, y, np.arange(150, dtype=np.int32).reshape(2, 75))

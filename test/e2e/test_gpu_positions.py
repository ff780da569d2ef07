"""Writes at computed positions on GPUs, where many threads share the work, in the interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from compiled import build, check, compiled, filled, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret


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


@pytest.mark.parametrize(("chip", "dtype", "shape", "axis", "held"), [
    ("sm_80", "float32", (40, 19), 0, 16), ("gfx942", "float32", (9, 100), 1, 128),
    ("gfx1100", "float16", (2, 50, 5), 1, 32), ("sm_80", "int64", (30,), 0, 8)])
def test_columns_are_combined_in_shared_memory_in_order(chip, dtype, shape, axis, held):
    updates = tuple(700 if d == axis else n for d, n in enumerate(shape))
    before, places, after = (int(np.prod(s)) for s in (shape[:axis], shape[axis], shape[axis + 1:]))
    index = np.random.default_rng(6).integers(-places, places, updates)
    index[index % 5 == 0] = 3       # many equal places side by side

    def combine(x, i, u):
        whole = [xt.reshape(v, shape=(before, xt.shape_of(v)[axis], after)) for v in (x, i, u)]
        return [xt.combine_columns(*whole, reduction=kind, columns=4, held=held)
                for kind in ("add", "max", "none")]

    with on_chip(chip):
        x, u = filled(shape, dtype), filled(updates, dtype, 1)
        check(combine, x, index.astype("int32" if axis else "int64"), u, tolerance=60 if dtype == "float16" else 1)


def test_sums_at_computed_positions_round_as_one_thread_would():
    x, u = np.zeros((4, 8), np.float32), filled((900, 8), "float32", 1) * 1e3
    index = np.random.default_rng(7).integers(0, 4, (900, 8))
    want = x.copy()
    for n in range(900):
        want[index[n], np.arange(8)] += u[n]
    module = build(lambda x, i, u: xt.scatter_elements(x, i, u, axis=0, reduction="add"), [x, index, u])
    with on_chip("sm_90a"):
        model = compiled(module)
    assert [k["name"] for k in model.artifact.manifest["kernels"]] == ["combine_columns_0"]
    np.testing.assert_array_equal(model(x, index, u), want)


@pytest.mark.parametrize(("chip", "shape", "keep", "dtype"), [
    ("sm_90a", (3, 100), 100, "float32"), ("gfx942", (1, 2050), 33, "float32"), ("gfx1201", (70, 40), 40, "float16"),
    ("sm_90a", (2, 300), 5, "float64"), ("gfx942", (5, 90), 90, "uint8"), ("sm_80", (2, 130), 130, "uint32"),
    ("gfx1100", (50, 17), 3, "int64"), ("sm_80", (3, 65), 1, "bfloat16")])
def test_rows_are_sorted_in_registers(chip, shape, keep, dtype):
    low = 0 if dtype[0] == "u" else -20
    x = np.random.default_rng(5).integers(low, 20, shape).astype(getattr(ml_dtypes, dtype, dtype))
    flat = x.reshape(-1)
    if dtype[0] in "fb":
        flat[3::17], flat[5::29], flat[7::31], flat[2::9] = np.nan, np.inf, -np.inf, -0.0
    else:
        flat[3::17], flat[5::29] = np.iinfo(x.dtype).max, np.iinfo(x.dtype).min

    def sorts(x):
        return *xt.sort_rows(x, keep=keep), *xt.sort_rows(x, keep=keep, descending=True)

    module, want = build(sorts, [x]), interpret(build(sorts, [x]), [x])
    with on_chip(chip):
        got = compiled(module).run({"x0": x}).values()
    for a, b in zip(got, want, strict=True):
        if dtype[0] in "fb":
            a, b = a.astype("float64"), b.astype("float64")
        np.testing.assert_array_equal(a, b)
        signs = [np.signbit(v[b == b]) for v in (a, b)]
        np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("chip", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_runs_are_sorted_and_merged(chip, kind):
    def merges(x, y, i):
        return (*xt.sort_runs(x, run=16, keep=16), *xt.sort_runs(x, run=32, keep=4),
                *xt.merge_runs(y, i, run=16, ways=2, keep=32),
                *xt.merge_runs(y, i, run=16, ways=4, keep=16), *xt.merge_runs(y, i, run=16, ways=8, keep=128))

    x = np.random.default_rng(1).integers(-9, 9, (2, 75)).astype(kind)
    x[0, ::7], x[1, ::5] = np.iinfo(kind).max, np.iinfo(kind).min
    y = np.concatenate([np.sort(x[:, s:s + 16], 1) for s in range(0, 75, 16)], 1)
    with on_chip(chip):
        check(merges, x, y, np.arange(150, dtype=np.int32).reshape(2, 75))


@pytest.mark.parametrize(("chip", "shape", "f"), [
    ("sm_90a", (2, 16500), lambda x: xt.softmax(x, axis=1)),
    ("gfx942", (2, 6, 16400), lambda x: xt.group_norm(x, None, None, groups=3, eps=1e-5)),
    ("sm_80", (3, 2, 2, 40, 70), lambda x: xt.transpose(x, perm=(0, 3, 1, 4, 2)))])
def test_long_rows_and_transposes_with_two_short_sides(chip, shape, f):
    x = filled(shape, "float32", 2)
    module = build(f, [x])
    with on_chip(chip):
        [got] = compiled(module).run({"x0": x}).values()
    np.testing.assert_allclose(got, interpret(module, [x])[0], rtol=1e-4, atol=1e-5)

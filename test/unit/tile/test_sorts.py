"""Sorts of rows on a CPU: rows shorter than a vector, as long, and of many; equal elements, NaN, both zeros."""

import numpy as np
import pytest

from xcc import tile


def numbers(dtype, n):
    rng = np.random.default_rng(n)
    if dtype == np.float32:
        x = np.round(rng.standard_normal((3, n)) * n / 4).astype(dtype)
        x[1, n // 2:] *= -1     # zeros of both signs
        x[2, n // 3] = x[2, 0] = np.nan
        return x
    x = rng.integers(-n, n, (3, n)).astype(dtype)
    x[0, -1] = np.iinfo(dtype).min
    return x


@pytest.mark.parametrize("dtype, chip", [(np.float32, "native"), (np.int64, "x86-64-v3"), (np.int8, "x86-64-v3")])
def test_sorted_rows(dtype, chip):
    kind = {np.float32: "f32", np.int64: "i64", np.int8: "i8"}[dtype]
    for n in (1, 2, 16, 128):
        few = max(1, n // 4)

        def program(x, up, down, places, first, n=n, few=few):
            t = x.tile((0, 0), (4, n), other=0)
            up.store((0, 0), tile.sort(t))
            down.store((0, 0), tile.sort(t, descending=True))
            places.store((0, 0), tile.order(t)[1])
            values, at = tile.order(t, descending=True, keep=few)
            first.store((0, 0), at)
            first.store((0, few), at)
            down.store((0, n), values)

        buffers = {name: tile.BufferOf("i32" if name in ("places", "first") else kind, (None, None))
                   for name in ("x", "up", "down", "places", "first")}
        x = numbers(dtype, n)
        up, down = np.zeros((3, n), dtype), np.zeros((3, n + few), dtype)
        places, first = np.zeros((3, n), np.int32), np.zeros((3, 2 * few), np.int32)
        made = tile.compile(tile.build("sorted", buffers, program, grid=(1,)), "cpu", chip)
        made.launch([x, up, down, places, first])
        order = np.argsort(x, 1, kind="stable")
        backwards = n - 1 - np.argsort(x[:, ::-1], 1, kind="stable")[:, ::-1]
        np.testing.assert_array_equal(up, np.sort(x, 1))
        np.testing.assert_array_equal(down, np.take_along_axis(x, np.hstack([backwards, backwards[:, :few]]), 1))
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(first, np.hstack([backwards[:, :few]] * 2))


@pytest.mark.parametrize("n, keep, sorts",
                         [(16, 2, False), (16, 4, True), (16, 0, True), (256, 8, False), (256, 16, True)])
def test_few_of_a_long_row_are_found_in_rounds(n, keep, sorts):
    def program(x, y):
        y.store((0, 0), tile.order(x.tile((0, 0), (1, n), other=0), keep=keep)[1])

    buffers = {"x": tile.BufferOf("f32", (None, None)), "y": tile.BufferOf("i32", (None, None))}
    assert ("tile.sort" in str(tile.build("order", buffers, program, grid=(1,)).text)) == sorts

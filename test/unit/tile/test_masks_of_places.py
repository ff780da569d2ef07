"""Comparisons of places with ends, which become masks of lanes, against numpy."""

import numpy as np
import pytest

from xcc import tile


@pytest.mark.parametrize("compare", [lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: b > a, lambda a, b: b >= a,
                                     lambda a, b: a >= b, lambda a, b: a != b])
def test_masks(compare):
    """A line of places, those of a row below a diagonal, and both at once."""
    def program(x, n):
        row = tile.program_id(0) * 4
        places = row + tile.arange(64, "i64")
        rows = row + tile.expand_dims(tile.arange(4, "i64"), 1)
        line = compare(tile.expand_dims(places, 0), n)
        diagonal = compare(tile.expand_dims(tile.arange(64, "i64"), 0), rows * 7)
        x.store((row, 0), tile.where(line & diagonal, 1.0, 0.0))

    made = tile.compile(tile.build("masks", {"x": tile.BufferOf("f32", (None, None)), "n": tile.ScalarOf("i64")},
                                   program, grid=("rows",)), "cpu")
    for n in (-5, 0, 31, 32, 40, 64, 70, 2**40):
        x = np.full((8, 64), np.nan, np.float32)
        made.launch([x, n], (2,))
        for first in (0, 4):
            line = compare(first + np.arange(64)[None, :], n)
            diagonal = compare(np.arange(64)[None, :], (first + np.arange(4)[:, None]) * 7)
            np.testing.assert_array_equal(x[first:first + 4], line & diagonal)

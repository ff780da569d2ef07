"""Transposes of slices whose contiguous dim begins behind the first element, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import check_runs, node, numbers


@pytest.mark.parametrize("starts", [(1, 1), (0, 3), (-33, -40)])
def test_a_transposed_slice_of_free_rows(starts: tuple[int, int]) -> None:
    """One line of the result is as long as the free dim, which may be 1."""
    nodes = [node("Slice", "x starts ends axes", "cut"), node("Transpose", "cut", "y", perm=[2, 0, 1])]
    constants = {"starts": np.array(starts), "ends": np.array([1 << 40] * 2), "axes": np.array([0, 2])}
    check_runs(nodes, [{"x": numbers(35, n, 67)} for n in (1, 2, 19)], "y", constants, dims={"x": [35, "n", 67]})


def test_a_transposed_slice_of_known_rows() -> None:
    nodes = [node("Slice", "x starts ends axes", "cut"), node("Transpose", "cut", "y", perm=[1, 0])]
    constants = {"starts": np.array([2, 5]), "ends": np.array([95, 64]), "axes": np.array([0, 1])}
    check_runs(nodes, [{"x": numbers(100, 65)}], "y", constants)

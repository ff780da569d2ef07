"""Products of matrices with vectors, in every orientation, of matrices that a gather or a transpose makes too."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import check, check_runs, ints, node, numbers

SIZES = [(1, 5, 7), (3, 33, 65), (5, 130, 64)]


@pytest.mark.parametrize(("batch", "rows", "columns"), SIZES)
def test_orientations(batch: int, rows: int, columns: int) -> None:
    """Sums along rows and along columns, with the matrix as it lies and transposed."""
    check([node("MatMul", "w x", "a"), node("MatMul", "z w", "b"), node("Transpose", "w", "t", perm=[0, 2, 1]),
           node("MatMul", "t y", "c"), node("MatMul", "u t", "d")],
          {"w": numbers(batch, rows, columns), "x": numbers(batch, columns, 1), "z": numbers(batch, 1, rows),
           "y": numbers(batch, rows, 1), "u": numbers(batch, 1, columns)}, "a b c d")


@pytest.mark.parametrize("turned", [False, True])
def test_gathered_matrices(turned: bool) -> None:
    """Of symbolic numbers of experts and tokens; negative places count from the end."""
    nodes = [node("Gather", "w i", "v", axis=0), node("Relu", "v", "r")]
    nodes += [node("Transpose", "r", "m", perm=[0, 2, 1])] if turned else [node("Identity", "r", "m")]
    rows = 33 if turned else 20
    runs = [{"w": numbers(n, 20, 33), "i": ints(*np.arange(m) % n - n * (m % 2)), "x": numbers(m, 53 - rows, 1)}
            for n, m in ((4, 6), (7, 3))]
    check_runs([*nodes, node("MatMul", "m x", "y")], runs, "y",
               dims={"w": ["e", 20, 33], "i": ["t"], "x": ["t", 53 - rows, 1]})

"""What GPUs read in pieces: parts of a concatenation in their own lanes, lines that resizes pick, matrices picked by
index, groups of channels that are joined. In the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import check, examples, filled, on_chip
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt

CHIPS = st.sampled_from(["sm_80", "gfx1100", "gfx942"])
PARTS = st.lists(st.sampled_from([1, 3, 8, 16, 24, 31, 32, 64]), min_size=2, max_size=7)


@given(st.data())
@examples(12)
def test_parts_of_concatenations(data: Any) -> None:
    """Bounds at multiples of a load and beside them, along the lanes' dim and others, and what is made of a part."""
    axis = data.draw(st.integers(0, 2))
    dtype = data.draw(st.sampled_from(["float32", "float16", "int8", "bool", "int64"]))
    base = [data.draw(st.sampled_from(sizes)) for sizes in ([1, 2, 5], [3, 16], [8, 33])]
    shapes = [[n if d == axis else size for d, size in enumerate(base)] for n in data.draw(PARTS)]
    made = data.draw(st.sampled_from(["", "sum", "neg"])) if dtype.startswith("float") else ""

    def f(*values: Any) -> Any:
        if made == "neg":       # a part that is no buffer
            values = (xt.neg(values[0]), *values[1:])
        y = xt.concatenate(*values, axis=axis)
        return xt.reduce(y, kind="sum", axes=(2,)) if made == "sum" else y

    with on_chip(data.draw(CHIPS)):
        check(f, *(filled(s, dtype, seed) for seed, s in enumerate(shapes)), dynamic=data.draw(st.booleans()))


@pytest.mark.parametrize("parts", [(2, 2), (1, 3), (3, 1), (1, 1, 2), (5, 3)], ids=str)
@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
def test_short_parts(chip: str, parts: tuple[int, ...]) -> None:
    """All in one tile, whose first lanes are the first part."""
    def f(y: Any, *values: Any) -> Any:
        return xt.maximum(y, xt.concatenate(*values, axis=0))

    with on_chip(chip):
        check(f, filled((sum(parts),), "float32"), *(filled((n,), "float32", n + 1) for n in parts))


@given(st.data())
@examples(6)
def test_picked_lines(data: Any) -> None:
    """Twice, as a resize does, with weights of lines; channels first and last."""
    rows, columns = (data.draw(st.sampled_from([3, 8, 17])) for _ in range(2))
    shape = (2, rows, columns, 16) if data.draw(st.booleans()) else (2, 5, rows, columns)
    axis = shape.index(rows, 1)
    rng = np.random.default_rng(1)
    i, j = (rng.integers(-n, n, 2 * n + 1) for n in (rows, columns))
    a = filled((2 * rows + 1, *(1,) * (len(shape) - 1 - axis)), "float32", 2)

    def f(x: Any, i: Any, j: Any, a: Any) -> Any:
        lines = xt.mul(xt.gather(x, i, axis=axis), xt.convert(a, dtype="f16"))
        return xt.gather(lines, j, axis=axis + 1)

    with on_chip(data.draw(CHIPS)):
        check(f, filled(shape, "float16"), i, j, a)


@pytest.mark.parametrize("rows", [1, 19])
@pytest.mark.parametrize("chip", ["sm_80", "gfx942"])
def test_matrices_picked_by_index(chip: str, rows: int) -> None:
    """One for each of a product's batch, of few rows and of many; they are read where they lie."""
    x, w, i = filled((5, rows, 40), "float16"), filled((3, 40, 24), "float16", 1), np.array([2, 0, -1, 1, 2])

    def f(x: Any, w: Any, i: Any) -> Any:
        return xt.dot_general(x, xt.gather(w, i, axis=0), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,),
                              rhs_contract=(1,))

    with on_chip(chip):
        check(f, x, w, i)


@pytest.mark.parametrize(("inputs", "outputs", "groups"), [(4, 4, 8), (3, 5, 6), (8, 4, 2), (2, 2, 5)])
def test_joined_groups(inputs: int, outputs: int, groups: int) -> None:
    x, w = filled((2, inputs * groups, 9, 7), "float16"), filled((outputs * groups, inputs, 3, 3), "float16", 1)

    def f(x: Any, w: Any) -> Any:
        return xt.convolution(x, w, groups=groups, low=(1, 1), high=(1, 1), strides=(1, 2), lhs_dilation=(1, 1),
                              rhs_dilation=(1, 1))

    with on_chip("sm_80"):
        check(f, x, w)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("kind", ["add", "max"])
def test_many_rows_for_few_places(kind: str, dtype: str) -> None:
    """As the gradient of a table of positions."""
    x, u, i = filled((12, 5), dtype), filled((900, 5), dtype, 1), np.random.default_rng(2).integers(-12, 12, (900, 1))
    with on_chip("sm_80"):
        check(lambda x, i, u: xt.scatter_nd(x, i, u, reduction=kind), x, i, u, tolerance=8)

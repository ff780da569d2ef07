"""Random programs over square shapes, where operands that do not line up have equal sizes all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import check, examples, filled
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt

F32 = np.dtype(np.float32)


def grow(values: list[Any], rng: Any, size: int) -> Any:
    """One more value of rank 2 or 3 with dims of `size`, from earlier ones."""
    x = values[int(rng.integers(len(values)))]
    rank = len(xt.shape_of(x))
    same = [v for v in values if len(xt.shape_of(v)) == rank]
    y = same[int(rng.integers(len(same)))]
    axis = int(rng.integers(rank))
    match int(rng.integers(8)):
        case 0:
            return xt.transpose(x, perm=[int(p) for p in rng.permutation(rank)])
        case 1:
            return xt.add(x, xt.transpose(y, perm=list(range(rank))[::-1]))
        case 2:
            return xt.sub(x, xt.reduce(y, kind=str(rng.choice(["max", "min"])), axes=[axis], keepdims=True))
        case 3:     # what is reduced over one axis lines up with another
            row = xt.reduce(y, kind="max", axes=[axis])
            return xt.maximum(x, row) if rank == 3 or rng.random() < 0.5 else xt.maximum(
                x, xt.reshape(row, shape=(size, 1)))
        case 4:
            return xt.mul(x, y)
        case 5:
            return xt.tanh(x)
        case 6:
            total = xt.reduce(xt.tanh(y), kind="sum", axes=[axis], keepdims=True)
            return xt.add(x, total)
        case _:
            return xt.softmax(x, axis=axis)


@given(st.data())
@examples(10)
def test_chains(data: Any) -> None:
    size = data.draw(st.sampled_from([1, 2, 3, 7, 16, 17, 33]))
    rank = data.draw(st.sampled_from([2, 2, 3]))
    steps, seed = data.draw(st.integers(2, 7)), data.draw(st.integers(0, 1 << 16))
    inputs = [filled((size,) * rank, F32, seed + i, -1, 1) for i in range(2)]

    def body(*arguments: Any) -> Any:
        rng, values = np.random.default_rng(seed), list(arguments)
        for _ in range(steps):
            values.append(grow(values, rng, size))
        return values[-1] if rng.random() < 0.5 else values[-2:]

    check(body, *inputs, dynamic=data.draw(st.booleans()), tolerance=8)


@given(st.data())
@examples(8)
def test_around_a_matmul(data: Any) -> None:
    """Prologues and epilogues of a square product, transposed or not."""
    size = data.draw(st.sampled_from([1, 5, 16, 31, 48]))
    flags = [data.draw(st.booleans()) for _ in range(5)]
    inputs = [filled((size, size), F32, i, -1, 1) for i in range(3)]

    def body(a: Any, b: Any, c: Any) -> Any:
        a = xt.transpose(a, perm=[1, 0]) if flags[0] else xt.tanh(a)
        b = xt.transpose(b, perm=[1, 0]) if flags[1] else b
        y = xt.matmul(a, b)
        y = xt.add(y, xt.transpose(c, perm=[1, 0]) if flags[2] else c)
        y = xt.add(y, xt.reduce(c, kind="sum", axes=[0], keepdims=True)) if flags[3] else y
        return xt.transpose(xt.tanh(y), perm=[1, 0]) if flags[4] else (y, xt.reduce(y, kind="max", axes=[1]))

    check(body, *inputs, dynamic=data.draw(st.booleans()), tolerance=4)

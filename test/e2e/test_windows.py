"""Windows as large as the image and larger: pools of all kinds, with padding, strides and dilations."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import check, examples
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import check as check_graph
from small_graphs import node, numbers

from xcc.dialects import xt


@given(st.data())
@examples(12)
def test_windows(data: Any) -> None:
    """Some reach beyond the image on both sides, for some or all of the results."""
    def drawn(most: int, least: int = 0) -> list[int]:
        return [data.draw(st.integers(least, most)) for _ in range(2)]

    size, window, strides, dilations = drawn(9, 1), drawn(20, 1), drawn(30, 1), drawn(9, 1)
    low, high = drawn(25), drawn(25)
    for d in range(2):      # at least one window fits
        high[d] += max(0, (window[d] - 1) * dilations[d] + 1 - size[d] - low[d] - high[d])
    kind = data.draw(st.sampled_from(["sum", "max", "min", "prod"]))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(0.9, 1.1, (2, 3, *size)).astype(np.float32)
    check(lambda v: xt.reduce_window(v, kind=kind, window=(1, 1, *window), strides=(1, 1, *strides),
                                     low=(0, 0, *low), high=(0, 0, *high), dilations=(1, 1, *dilations)),
          x, tolerance=4)


def test_average_of_more_than_the_image() -> None:
    """The kernel of a model for large images, on a small one."""
    check_graph([node("AveragePool", "x", "y", ceil_mode=1, kernel_shape=[1280, 1280], strides=[1280, 1280])],
                {"x": numbers(2, 5, 7, 7)}, "y", dims={"x": ["b", 5, 7, 7]})


@given(st.data())
@examples(10)
def test_separate_axes(data: Any) -> None:
    """Windows that are reduced one axis after the other: of two and three axes, of each kind and width of elements."""
    axes = data.draw(st.integers(1, 3))

    def drawn(least: int, most: int) -> list[int]:
        return [data.draw(st.integers(least, most)) for _ in range(axes)]

    window, strides, low, high = drawn(2, 6), drawn(1, 3), drawn(0, 4), drawn(0, 4)
    size = [n + more for n, more in zip(window, drawn(0, 40 if axes < 3 else 9), strict=True)]
    kind = data.draw(st.sampled_from(["sum", "max", "max", "min"]))
    dtype = data.draw(st.sampled_from([np.float32, np.float32, np.float16, np.uint8, np.int8, np.int64, np.uint64]))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 100, (2, 3, *size)).astype(dtype)
    if dtype == np.float32 and kind != "sum":
        x[0, 1].flat[0] = np.nan        # stays in all windows over it
    before, behind = data.draw(st.sampled_from([((1, 1), ()), ((1,), (1,))]))
    x = x if not behind else np.moveaxis(x, 1, -1).copy()

    def around(values: list[int], rest: int) -> tuple[int, ...]:
        return (*(rest for _ in before), *values, *(rest for _ in behind))

    check(lambda v: xt.reduce_window(v, kind=kind, window=around(window, 1), strides=around(strides, 1),
                                     low=around(low, 0), high=around(high, 0)), x, tolerance=4)


def test_separate_axes_of_free_dims() -> None:
    """A pyramid of pools, whose image is read by each of them."""
    pools = [node("MaxPool", before, after, kernel_shape=[k, k], pads=[k // 2] * 4)
             for before, after, k in [("x", "a", 5), ("a", "b", 9), ("x", "c", 13)]]
    check_graph([*pools, node("Concat", "x a b c", "y", axis=1)], {"x": numbers(2, 5, 21, 35)}, "y",
                dims={"x": ["b", 5, "h", "w"]})

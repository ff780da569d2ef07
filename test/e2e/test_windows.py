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

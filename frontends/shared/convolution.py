"""Convolutions, their transposes and their adjoints."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc.dialects import xt
from xcc.frontends.shared.helpers import along, rank_of
from xcc.frontends.shared.windows import Shape, Window


def add_bias(x: Any, bias: Any) -> Any:
    """x [N, C, ...] + bias [C]."""
    return xt.add(x, along(bias, 1, rank_of(x)))


def transposed(x: Any, w: Any, begin: Shape, end: Shape, strides: tuple[int, ...], dilations: tuple[int, ...],
               groups: int) -> Any:
    """The transposed convolution with w [C, M/groups, kernel...]: one of the spread input with the flipped filter.

    `begin` and `end` elements are cut from the full result; a negative number appends zeros.
    """
    window = Window(tuple(xt.shape_of(w)[2:]), strides, dilations, begin, end)
    low = tuple(span - 1 - b for span, b in zip(window.spans(), begin, strict=True))
    high = tuple(span - 1 - e for span, e in zip(window.spans(), end, strict=True))
    return xt.convolution(x, _transposed_filter(w, groups), low=low, high=high, lhs_dilation=strides,
                          rhs_dilation=dilations, groups=groups)


def _transposed_filter(w: Any, groups: int) -> Any:
    """[C, M/groups, kernel...] -> [M, C/groups, kernel...], flipped."""
    c, m, *kernel = xt.shape_of(w)
    flipped = xt.reverse(w, axes=tuple(range(2, 2 + len(kernel))))
    grouped = xt.reshape(flipped, shape=(groups, symbolic.floordiv(c, groups), m, *kernel))
    swapped = xt.transpose(grouped, perm=(0, 2, 1, *range(3, 3 + len(kernel))))
    return xt.reshape(swapped, shape=(m * groups, symbolic.floordiv(c, groups), *kernel))

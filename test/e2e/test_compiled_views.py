"""Products between reshapes, transposes and slices, as programs of a framework have them, which move-views takes away.

Sizes are odd, rows are one or several dims in either order, and matrices and scales lie either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import check, examples, filled
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt

SIZES = st.sampled_from([1, 2, 3, 5, 7, 16, 17, 33])


def product(x: Any, w: Any, across: bool, in_place: bool) -> Any:
    """x: [.., k] times w: [k, n] or, `across`, [n, k], by a transpose in front of the product or in place."""
    rhs = 0
    if across:
        w, rhs = (w, 1) if in_place else (xt.transpose(w, perm=(1, 0)), 0)
    return xt.dot_general(x, w, lhs_batch=(), rhs_batch=(), lhs_contract=(len(xt.shape_of(x)) - 1,),
                          rhs_contract=(rhs,), dtype="f32")


@given(st.data())
@examples(16)
def test_rows_in_any_order(data: Any) -> None:
    """Rows merged and parted again around a product, turned before it and behind it, with a bias and a scale."""
    b, s, k, n = (data.draw(SIZES) for _ in range(4))
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    turn, merge, back = (data.draw(st.booleans()) for _ in range(3))
    scaled, act, in_place = (data.draw(st.booleans()) for _ in range(3))
    across = data.draw(st.booleans())

    def body(x: Any, w: Any, bias: Any, scale: Any, rest: Any) -> Any:
        rows = (s, b) if turn else (b, s)
        y = xt.transpose(x, perm=(1, 0, 2)) if turn else x
        y = product(xt.reshape(y, shape=(b * s, k)) if merge else y, w, across, in_place)
        y = xt.add(xt.convert(y, dtype=xt.element_type_of(bias)), bias)
        y = xt.reshape(y, shape=(*rows, n)) if merge else y
        y = xt.tanh(y) if act else y
        if scaled:      # of each column, where columns come first
            y = xt.transpose(xt.mul(xt.transpose(y, perm=(2, 0, 1)), scale), perm=(1, 2, 0))
        if turn and back:
            return xt.add(xt.transpose(y, perm=(1, 0, 2)), rest)
        return xt.reshape(y, shape=(b * s, n)) if back else y

    check(body, filled((b, s, k), dtype, 1), filled((n, k) if across else (k, n), dtype, 2), filled((n,), dtype, 3),
          filled((n, 1, 1), dtype, 4), filled((b, s, n), dtype, 5))


@given(st.data())
@examples(12)
def test_heads_of_one_product(data: Any) -> None:
    """Queries, keys and values cut out of one product's columns before and behind reshapes and transposes."""
    b, s, heads, width = data.draw(SIZES), data.draw(SIZES), data.draw(st.sampled_from([1, 2, 3])), 8
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    turn, whole, attend, flat = (data.draw(st.booleans()) for _ in range(4))
    parts = data.draw(st.sampled_from([2, 3]))

    def body(x: Any, w: Any) -> Any:
        rows = (s, b) if turn else (b, s)
        y = xt.transpose(x, perm=(1, 0, 2)) if turn else x
        y = xt.convert(product(y, w, True, False), dtype=xt.element_type_of(x))
        split = xt.reshape(y, shape=(*rows, parts, heads * width))
        front = xt.transpose(split, perm=(2, 0, 1, 3))
        found = []
        for p in range(parts):
            columns = xt.slice_(y, starts=(0, 0, p * heads * width), limits=(*rows, (p + 1) * heads * width),
                                strides=(1,) * 3)
            cut = columns if flat else xt.slice_(front, starts=(p, 0, 0, 0), limits=(p + 1, *rows, heads * width),
                                                 strides=(1,) * 4)
            order = (1, 2, 0, 3) if turn else (0, 2, 1, 3)
            if whole and turn:      # batch and heads are merged in between
                cut = xt.transpose(xt.reshape(cut, shape=(s, b * heads, width)), perm=(1, 0, 2))
                found.append(xt.reshape(cut, shape=(b, heads, s, width)))
            else:
                found.append(xt.transpose(xt.reshape(cut, shape=(*rows, heads, width)), perm=order))
        if not attend:
            return tuple(xt.tanh(f) for f in found)
        return xt.attention(found[0], found[1], found[-1], scale=width ** -0.5)

    check(body, filled((b, s, 16), dtype, 1), filled((parts * heads * width, 16), dtype, 2))


@given(st.data())
@examples(10)
def test_operands_that_lie_either_way(data: Any) -> None:
    """Each side of a product along the sum or along its rows, with a batch in front or between."""
    m, n, k, batch = (data.draw(SIZES) for _ in range(4))
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    orders = [data.draw(st.permutations([0, 1, 2])) for _ in range(2)]

    def body(x: Any, w: Any) -> Any:
        left, right = (xt.transpose(v, perm=order) for v, order in zip((x, w), orders, strict=True))
        return xt.dot_general(left, right, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,),
                              dtype="f32")

    def stored(shape: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
        return tuple(shape[order.index(d)] for d in range(3))

    check(body, filled(stored((batch, m, k), orders[0]), dtype, 1), filled(stored((batch, k, n), orders[1]), dtype, 2))


@given(st.data())
@examples(8)
def test_parts_of_products(data: Any) -> None:
    """Rows, columns and batches of a product behind pointwise ops, which a slice alone reads."""
    x, w, b = filled((3, 9, 5), np.float32, 1), filled((3, 5, 8), np.float32, 2), filled((9, 1), np.float32, 3)
    starts = [data.draw(st.integers(0, n - 1)) for n in (3, 9, 8)]
    limits = [data.draw(st.integers(low + 1, n)) for low, n in zip(starts, (3, 9, 8), strict=True)]
    strides, gelu = [data.draw(st.integers(1, 3)) for _ in range(3)], data.draw(st.booleans())

    def body(x: Any, w: Any, b: Any) -> Any:
        y = xt.dot_general(x, w, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
        z = xt.gelu(xt.add(y, b)) if gelu else xt.tanh(xt.mul(b, y))
        return xt.slice(z, starts=starts, limits=limits, strides=strides)

    check(body, x, w, b, tolerance=8)

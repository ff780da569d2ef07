"""Several stores of an instance that share what they are made of, on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcc


@xcc.kernel
def update(p: Any, v: Any, g: Any, out: Any, SIZE: xcc.constexpr) -> None:
    """Momentum: `p` is read behind the store of `v`; `out` has what was read of `p`, ahead of the first store."""
    at = xcc.program_id(0) * SIZE
    before = p.tile(at, SIZE, other=0)
    m = v.tile(at, SIZE, other=0) * 0.5 + g.tile(at, SIZE, other=0)
    v.store(at, m)
    p.store(at, p.tile(at, SIZE, other=0) - m * 2.0)
    out.store(at, before + m)


@xcc.kernel
def shifted(x: Any, y: Any, z: Any, SIZE: xcc.constexpr) -> None:
    """`z` is made of neighbours of what `y` has, as these were and as they are."""
    was = y.tile(1, SIZE, other=0)
    t = xcc.exp(x.tile(0, SIZE, other=0))
    y.store(0, t)
    z.store(0, t + was + y.tile(2, SIZE, other=0))


@xcc.kernel
def turned(x: Any, y: Any, z: Any) -> None:
    """Rows, and sums of rows beside each, of which a store between makes none."""
    t = x.tile((0, 0), (4, 64), other=0)
    e = xcc.exp(t)
    y.store((0, 0), e)
    z.store((0, 0), e / e.sum(axis=1, keepdims=True) + x.tile((0, 1), (4, 64), other=0))


@pytest.mark.parametrize("n", [1, 63, 130])
@pytest.mark.parametrize("same", [False, True])
def test_stores_of_an_update(n: int, same: bool) -> None:
    """Also where `out` is the array of gradients, each element of which is read before it is written."""
    rng = np.random.default_rng(n)
    p, v, g = (rng.integers(-8, 9, n).astype(np.float32) for _ in range(3))
    m = v * 0.5 + g
    wanted = p - 2 * m, m, p + m
    out = g if same else np.zeros_like(g)
    update[(xcc.cdiv(n, 64),)](p, v, g, out, SIZE=64)
    for have, want in zip((p, v, out), wanted, strict=True):
        np.testing.assert_array_equal(have, want)


def test_neighbours_of_what_is_stored() -> None:
    x, y, z = np.linspace(0, 1, 50, dtype=np.float32), np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    e, zero = np.exp(x), np.zeros(2, np.float32)
    wanted = e + np.append(y[1:], zero[:1]) + np.append(e[2:], zero)
    shifted[(1,)](x, y, z, SIZE=64)
    np.testing.assert_allclose(y, e, rtol=1e-6)
    np.testing.assert_allclose(z, wanted, rtol=1e-6)


def test_a_reduction_between() -> None:
    x = np.random.default_rng(0).random((3, 60), np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    turned[(1,)](x, y, z)
    e, right = np.exp(x), np.pad(x[:, 1:], ((0, 0), (0, 1)))
    np.testing.assert_allclose(y, e, rtol=1e-6)
    np.testing.assert_allclose(z, e / (e.sum(1, keepdims=True) + 4) + right, rtol=1e-5)   # 4 places are exp(0)

"""Sizes that costs are estimated with."""

from __future__ import annotations

from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.symbolic import floordiv, sym

N = sym("n")


def test_bounds_and_quotients() -> None:
    assert nominal_count((3, N), {}) == 3 * nominal_count((N,), {})
    assert nominal_count((N, 2), {"n": (1, 5)}) == 10
    assert nominal_count((floordiv(N, 2),), {"n": (0, 8)}) == 4
    assert nominal_count((floordiv(4, N),), {"n": (0, 1000)}) == 1
    assert nominal_count((3, floordiv(4, floordiv(4, N))), {"n": (0, 1000)}) == 3     # a division by 4 // 128

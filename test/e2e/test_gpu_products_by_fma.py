"""Products by FMAs, in the interpreter: operands along k, which copies turn, and across it."""

from __future__ import annotations

import pytest
from compiled import check, filled, on_chip

from xcc.dialects import xt


@pytest.mark.parametrize("chip", ["sm_90a", "sm_80", "gfx1100"])
@pytest.mark.parametrize(("m", "n", "k", "dtype"), [(70, 65, 99, "float32"), (33, 130, 64, "float64")])
def test_operands_along_k_and_across(chip, m, n, k, dtype):
    """Whole and masked steps, rows of any length: a bᵀ, a b, aᵀ b."""
    def products(a, b, c, d):
        dot = {"lhs_batch": (), "rhs_batch": (), "dtype": a_type}
        return (xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(1,), **dot),
                xt.dot_general(a, c, lhs_contract=(1,), rhs_contract=(0,), **dot),
                xt.dot_general(d, c, lhs_contract=(0,), rhs_contract=(0,), **dot))

    a_type = "f64" if dtype == "float64" else "f32"
    with on_chip(chip):
        check(products, filled((m, k), dtype), filled((n, k), dtype, 1), filled((k, n), dtype, 2),
              filled((k, m), dtype, 3))


@pytest.mark.parametrize("chip", ["sm_90a", "gfx1100"])
def test_batches(chip):
    """Of small matrices, and of such as have a tile each."""
    def products(a, b, c, d):
        dot = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (2,), "dtype": "f32"}
        return xt.dot_general(a, b, **dot), xt.dot_general(c, d, **dot)

    with on_chip(chip):
        check(products, filled((6, 9, 21), "float32"), filled((6, 7, 21), "float32", 1),
              filled((2, 67, 40), "float32", 2), filled((2, 50, 40), "float32", 3))

"""Sizes that are a float times a size: quotients of whole numbers where these round alike."""

from __future__ import annotations

import math
import random

import pytest
import sympy
from torch.utils._sympy.functions import CeilToInt, FloorToInt, ToFloat

from xcc import symbolic
from xcc.frontends.torch.sizes import NoSize, dim_of

N = sympy.Symbol("n", integer=True, nonnegative=True)
DRAWN = random.Random(0)


@pytest.mark.parametrize("factor", [1.2, 1.1, 1.7, 0.3, 1.3, 1 / 3, 2 / 3, 2.5])
def test_they_are_what_floats_give(factor: float) -> None:
    dim = dim_of(FloorToInt(sympy.Float(factor) * ToFloat(N)), {N: symbolic.sym("n")})
    sizes = [DRAWN.randrange(1 << 31) // k * k for k in (1, 3, 10) for _ in range(100)]
    for n in (*range(200), *sizes):
        assert symbolic.evaluate(dim, {"n": n}) == math.floor(factor * n), n


@pytest.mark.parametrize("size", [FloorToInt(sympy.Float(0.7) * ToFloat(N)), CeilToInt(sympy.Float(1.1) * ToFloat(N))])
def test_others_are_refused(size: sympy.Expr) -> None:
    """``floor(0.7 * 730)`` is 510, ``ceil(1.1 * 10)`` is 12."""
    with pytest.raises(NoSize, match=r"\*"):
        dim_of(size, {N: symbolic.sym("n")})

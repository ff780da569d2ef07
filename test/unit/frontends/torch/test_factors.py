"""Sizes that are a float times a size, and square roots of sizes, rounded: as floats give."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatPow,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    OpaqueUnaryFn_sqrt,
    RoundToInt,
    ToFloat,
    TruncToInt,
)

from xcc import symbolic
from xcc.frontends.torch.sizes import NoSize, dim_of

N = sympy.Symbol("n", integer=True, nonnegative=True)
DRAWN = random.Random(0)
ROUNDED: list[tuple[Any, Callable[[float], int]]] = [
    (FloorToInt, math.floor), (CeilToInt, math.ceil), (TruncToInt, math.trunc), (RoundToInt, round)]


def check(size: Any, wanted: Callable[[int], int], sizes: Any) -> None:
    dim = dim_of(size, {N: symbolic.sym("n")})
    for n in sizes:
        assert symbolic.evaluate(dim, {"n": n}) == wanted(n), n


@pytest.mark.parametrize("factor", [1.2, 1.1, 1.7, 0.3, 1.3, 1 / 3, 2 / 3, 2.5, 0.7, 2.3, 0.9])
def test_they_are_what_floats_give(factor: float) -> None:
    """``floor(0.7 * 730)`` is 510, ``ceil(1.1 * 10)`` is 12."""
    sizes = [*range(800), *(DRAWN.randrange(1 << 31) // k * k for k in (1, 3, 10) for _ in range(100))]
    for kind, rounded in ROUNDED[:3]:
        check(kind(sympy.Float(factor) * ToFloat(N)), lambda n, by=rounded: by(factor * n), sizes)
    below = sympy.Float(factor) * ToFloat(N - 300)
    check(TruncToInt(below), lambda n: math.trunc(factor * (n - 300)), range(400))


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 10])
def test_quotients_to_the_nearest(divisor: int) -> None:
    check(RoundToInt(IntTrueDiv(N, divisor)), lambda n: round(n / divisor), range(100))


@pytest.mark.parametrize("step", [1.0, 0.75, -0.5, 1.5])
def test_ranges_of_fractions(step: float) -> None:
    """``torch.arange(0.5, n // 2, step)``"""
    for start in (0.5, -1.25, 3.0):
        for end, of in ((ToFloat(FloorDiv(N, 2)), lambda n: n // 2), (IntTrueDiv(N, 4), lambda n: n / 4),
                        (sympy.Float(0.5) * ToFloat(N) + sympy.Float(0.25), lambda n: n * 0.5 + 0.25)):
            for kind, rounded in ROUNDED:
                check(kind(FloatTrueDiv(end - sympy.Float(start), sympy.Float(step))),
                      lambda n, by=rounded, of=of, start=start: by((of(n) - start) / step), range(40))


@pytest.mark.parametrize("root", [OpaqueUnaryFn_sqrt, lambda x: FloatPow(x, sympy.Float(0.5))])
def test_square_roots(root: Callable[[Any], Any]) -> None:
    sizes = [*range(300), *(DRAWN.randrange(1 << 15) ** 2 + near for near in (-1, 0, 1) for _ in range(50))]
    for kind, rounded in ROUNDED:
        check(kind(root(ToFloat(N))), lambda n, by=rounded: by(math.sqrt(n)), [n for n in sizes if n >= 0])
        if kind is not RoundToInt:
            check(kind(root(IntTrueDiv(N, 3))), lambda n, by=rounded: by(math.sqrt(n / 3)), range(300))


def test_others_are_refused() -> None:
    for size in (RoundToInt(sympy.Float(0.7) * ToFloat(N)), FloorToInt(FloatPow(ToFloat(N), sympy.Float(0.25))),
                 FloorToInt(sympy.Float(0.1) * ToFloat(N) + sympy.Float(0.5)),
                 CeilToInt(FloatTrueDiv(ToFloat(N), sympy.Float(0.1)))):
        with pytest.raises(NoSize):
            dim_of(size, {N: symbolic.sym("n")})

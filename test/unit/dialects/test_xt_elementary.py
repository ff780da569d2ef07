"""The elementary functions and matrix products that constants are computed with, beside more exact ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from xcc.dialects.xt import angles, elementary
from xcc.dialects.xt.products import matmul

LONG = np.finfo(np.longdouble).nmant >= 63
NAMES = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
         "atanh": "arctanh"}
HUGE = {"log": 1000, "log2": 1000, "log10": 1000, "cbrt": 1000, "asinh": 1000, "acosh": 1000, "log1p": 1000,
        "atan": 1000}
"""Functions of numbers up to 2**1000; the others are looked at up to 2**6."""
FUNCTIONS = ("acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log10 log1p log2 sin sinh tan "
             "tanh").split()
TURNED = {
    19: (0.1676180272206543, 0.9858520157461037),
    20: (0.3304931400217347, 0.943808393901312),
    53: (-0.848925964814655, -0.5285117844130887),
    200: (-0.47889779970693525, -0.877870660995033),
    500: (0.42925739234242827, 0.9031822026143886),
    1000: (-0.15920170308624243, 0.9872460775989135),
}
"""sin and cos of 2**k."""
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e300, -1e300,
                    5e-324, -5e-324, 1e-310])


def function(name: str) -> Callable[..., Any]:
    return getattr(elementary, name) if hasattr(elementary, name) else getattr(angles, name)  # type: ignore[no-any-return]


def arguments(name: str) -> np.ndarray[Any, Any]:
    """Numbers of both signs and of all sizes, and many near 1 and near multiples of pi/2."""
    rng = np.random.default_rng(0)
    spread = 2.0 ** rng.uniform(-60, HUGE.get(name, 6), 2000) * rng.choice([-1, 1], 2000)
    quarters = np.arange(1, 40) * np.pi / 2
    return np.concatenate([spread, rng.uniform(-1, 1, 1000), 1 + rng.uniform(0, 1e-3, 500), quarters])


@pytest.mark.skipif(not LONG, reason="long double is no longer than double")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    x = arguments(name)
    with np.errstate(all="ignore"):
        wanted = getattr(np, NAMES.get(name, name))(x.astype(np.longdouble))
        got = function(name)(x)
        assert np.array_equal(np.isnan(wanted), np.isnan(got))
        kept = np.isfinite(wanted)
        units = np.abs(got - wanted)[kept] / np.spacing(np.abs(wanted[kept]).astype(np.float64))
        assert units.max() < 2.1
        single = x.astype(np.float32)
        assert function(name)(single).dtype == np.float32
        near = getattr(np, NAMES.get(name, name))(single.astype(np.longdouble)).astype(np.float32)
        assert np.array_equal(function(name)(single), near, equal_nan=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_arguments(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted, got = getattr(np, NAMES.get(name, name))(SPECIAL), function(name)(SPECIAL)
    np.testing.assert_allclose(got, wanted, rtol=1e-15, atol=0)
    assert np.array_equal(np.signbit(got), np.signbit(wanted) & ~np.isnan(wanted))


def test_two_operands() -> None:
    a, b = (v.reshape(-1) for v in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        for got, wanted in ((elementary.power(a, b), np.power(a, b)), (angles.atan2(a, b), np.arctan2(a, b)),
                            (elementary.logaddexp(a, b), np.logaddexp(a, b))):
            np.testing.assert_allclose(got, wanted, rtol=2e-15, atol=0)
            assert np.array_equal(np.signbit(got), np.signbit(wanted) & ~np.isnan(wanted))


def test_powers_that_are_numbers_are_exact() -> None:
    a, b = (v.reshape(-1).astype(np.float64) for v in np.meshgrid(np.arange(-20, 21), np.arange(0, 11)))
    assert elementary.power(a, b).tolist() == [float(int(x) ** int(y)) for x, y in zip(a, b, strict=True)]
    assert elementary.cbrt(a**3).tolist() == a.tolist()
    assert elementary.log2(2.0**a).tolist() == a.tolist()


def test_power_of_large_exponents() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.9, 1.1, 300), rng.uniform(-5000, 5000, 300)
    wanted = np.power(a.astype(np.longdouble), b)
    assert np.max(np.abs(elementary.power(a, b) - wanted) / wanted) < (2e-16 if LONG else 1e-12)


def test_erf() -> None:
    x = np.concatenate([np.linspace(-7, 7, 2001), [1e-300, 0.0, -0.0, np.inf, -np.inf]])
    np.testing.assert_allclose(elementary.erf(x), [math.erf(v) for v in x], rtol=2e-15, atol=0)


def test_angles_of_large_numbers() -> None:
    for k, (sine, cosine) in TURNED.items():
        assert abs(angles.sin(np.array(2.0**k)) - sine) < 3e-16
        assert abs(angles.cos(np.array(-2.0**k)) - cosine) < 3e-16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 1, 2), (4, 7, 5), (5, 300, 6), (2, 5000, 1)])
def test_products(dtype: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, m, k)).astype(dtype), rng.standard_normal((2, k, n)).astype(dtype)
    a[0, 0] *= dtype(1e-20)
    exact = [[[float(sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(r, c, strict=True)))
               for c in b[i].T] for r in a[i]] for i in range(2)]
    assert (np.abs(matmul(a, b) - exact) <= 4 * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b))).all()


def test_products_of_numbers_of_all_sizes() -> None:
    a, b = np.array([[1e30, 1.0, 1e-30]], np.float32), np.array([[0.0], [1.0], [1.0]], np.float32)
    assert matmul(a, b).tolist() == [[1.0]]
    a[0, 0] = np.inf
    assert np.isnan(matmul(a, b)).all()
    assert matmul(np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)).tolist() == [[0.0] * 3] * 2
    assert matmul(np.ones((2, 0, 4), np.float32), np.ones((4, 3), np.float32)).shape == (2, 0, 3)
    assert matmul(np.array([[1 << 40]]), np.array([[1 << 24]])).tolist() == [[0]]

"""Elementary functions of arrays, the same bits on every machine.

numpy's own and those of the C library are chosen by the CPU and differ in the last bit. These consist of additions,
multiplications, divisions, roots and powers of two, which IEEE 754 defines. All is computed in f64, at most 2 units in
the last place off (erf 7), and rounded to the operands' type.

Two numbers are a value in two parts, the second what the first has lost; sums and products of such are T. J. Dekker's,
"A floating-point technique for extending the available precision" (1971). Reductions: J.-M. Muller, "Elementary
Functions" (2016); the polynomials are Taylor's, as far as f64 sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from math import factorial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Pair = tuple[Any, Any]

CHUNK = 1 << 14     # elements at a time: what a function makes of them stays in the cache
LN2 = (0.6931471803691238, 1.9082149292705877e-10)      # the first of 32 bits
LOG2E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10E = (0.4342944819032518, 1.098319650216765e-17)
THIRD = (0.3333333333333333, 1.850371707708594e-17)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
ROOT_HALF = 0.7071067811865476
TWO_OVER_ROOT_PI = 1.1283791670955126
ROOT_PI = 1.772453850905516

_EXP = [float(Fraction(1, factorial(n))) for n in range(14, 1, -1)]
_LOG = [float(Fraction(2, 2 * n + 1)) for n in range(15, 1, -1)]


def by_element(f: Callable[..., Any]) -> Callable[..., Array]:
    """`f` of f64 arrays of one dim, for arrays of any shapes that broadcast and of any float type; NaN is one NaN."""
    @wraps(f)
    def of_arrays(*xs: Array) -> Array:
        arrays = np.broadcast_arrays(*map(np.asarray, xs))
        out = np.empty(arrays[0].shape, arrays[0].dtype)
        flat, rows = out.reshape(-1), [a.reshape(-1) for a in arrays]
        with np.errstate(all="ignore"):
            for i in range(0, flat.size, CHUNK):
                y = f(*(r[i:i + CHUNK].astype(np.float64) for r in rows))
                flat[i:i + CHUNK] = np.where(np.isnan(y), np.nan, y)
        return out

    return of_arrays


def horner(x: Array, coefficients: list[float]) -> Array:
    """The polynomial with these coefficients, the highest one first."""
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = y * x + c
    return y


def two_sum(a: float | Array, b: float | Array) -> Pair:
    """a + b rounded, and what rounding lost."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def product(a: float | Array, b: float | Array) -> Pair:
    """a * b rounded, and what rounding lost; for factors below 2**990."""
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _halves(a: float | Array) -> Pair:
    """`a` as a sum of two numbers of 26 bits."""
    t = a * 134217729.0
    high = t - (t - a)
    return high, a - high


def add(a: Pair, b: Pair) -> Pair:
    s, lost = two_sum(a[0], b[0])
    return two_sum(s, lost + (a[1] + b[1]))


def _times(a: Pair, b: Pair) -> Pair:
    p, lost = product(a[0], b[0])
    return two_sum(p, lost + (a[0] * b[1] + a[1] * b[0]))


def _reduced(x: Array, low: float | Array = 0.0) -> tuple[Array, Array, Array]:
    """(k, r, its lower part) with x + low = k*ln2 + r."""
    x = np.clip(x, -800.0, 800.0)
    k = np.rint(x * LOG2E[0])
    r, lost = two_sum(x - k * LN2[0], -(k * LN2[1]))
    return np.where(np.isnan(k), 0, k).astype(np.int32), *two_sum(r, lost + low)


def _exp(x: Array, low: float | Array = 0.0) -> Array:
    """e to the power x + low."""
    k, r, rest = _reduced(x, low)
    s, lost = two_sum(np.ones_like(r), r)
    return np.ldexp(s + (lost + (r * r * horner(r, _EXP) + rest * s)), k)


def _expm1(x: Array) -> Array:
    k, r, rest = _reduced(x)
    half = np.ldexp(np.ones_like(r), np.minimum(k, 1025) - 1)
    y = np.where(k == 0, r + (rest + r * r * horner(r, _EXP)),
                 ((half - 0.5) + (r + (rest + r * r * horner(r, _EXP))) * half) * 2.0)
    return np.where(np.abs(x) < 2.0**-54, x, y)


def _log_pair(x: Array, low: float | Array = 0.0) -> Pair:
    """log(x + low) for finite x > 0 in two parts, 2**-65 off: twice the series of atanh((m - 1) / (m + 1))."""
    m, k = np.frexp(x)
    small = m < ROOT_HALF
    m, k = np.where(small, m * 2.0, m), np.where(small, k - 1, k)
    low = np.ldexp(low, -k)
    f, (d, d_low) = m - 1.0, two_sum(m, 1.0)
    s = f / d
    p, lost = product(s, d)
    s = (s, (((f - p) - lost) + low - s * (d_low + low)) / d)
    z = _times(s, s)
    c, c_low = two_sum(TWO_THIRDS[0], z[0] * horner(z[0], _LOG))
    y = add((s[0] * 2.0, s[1] * 2.0), _times(_times(s, z), (c, c_low + TWO_THIRDS[1])))
    return add(two_sum(k * LN2[0], k * LN2[1]), y)


def _log_special(x: Array, y: Array) -> Array:
    """y, the logarithm of x, where x is finite and above 0."""
    return np.where(x > 0, np.where(x == np.inf, x, y), np.where(x == 0, -np.inf, np.nan))


def _log(x: Array) -> Array:
    return _log_special(x, _log_pair(x)[0])


def _log1p(x: Array) -> Array:
    u, lost = two_sum(x, 1.0)
    y = _log_special(u, _log_pair(u, np.where(np.isfinite(x), lost, 0.0))[0])
    return np.where(np.abs(x) < 2.0**-54, x, y)


def _power(a: Array, b: Array) -> Array:
    """a to the power b with the special cases of IEEE 754."""
    whole = b == np.trunc(b)
    odd = np.abs(np.fmod(b, 2.0)) == 1.0
    size = np.abs(a)
    usual = np.isfinite(b) & (b != 0) & (size > 0) & (size < np.inf) & ((a > 0) | whole)
    exponent = np.where(usual, np.clip(b, -2.0**70, 2.0**70), 1.0)
    high, low = _times(_log_pair(np.where(usual, size, 1.0)), (exponent, 0.0))
    y = _exp(high, np.where(np.abs(high) < 800.0, low, 0.0))
    return np.where(usual, np.where((a < 0) & odd, -y, y), np.power(a, b))


@by_element
def cbrt(x: Array) -> Array:
    a = np.abs(x)
    high, low = _times(_log_pair(a), THIRD)
    return np.where((a > 0) & (a < np.inf), np.copysign(_exp(high, low), x), x)


@by_element
def log2(x: Array) -> Array:
    return _log_special(x, _times(_log_pair(x), LOG2E)[0])


@by_element
def log10(x: Array) -> Array:
    return _log_special(x, _times(_log_pair(x), LOG10E)[0])


@by_element
def exp2(x: Array) -> Array:
    x = np.clip(x, -1200.0, 1200.0)
    k = np.rint(x)
    high, low = product(x - k, LN2[0])
    return np.ldexp(_exp(high, low + (x - k) * LN2[1]), np.where(np.isnan(k), 0, k).astype(np.int32))


@by_element
def sinh(x: Array) -> Array:
    a = np.abs(x)
    t, h = _expm1(a), _exp(a * 0.5)
    return np.copysign(np.where(a < 22.0, (t + t / (t + 1.0)) * 0.5, h * 0.5 * h), x)


@by_element
def cosh(x: Array) -> Array:
    a = np.abs(x)
    e, h = _exp(a), _exp(a * 0.5)
    return np.where(a < 22.0, (e + 1.0 / e) * 0.5, h * 0.5 * h)


@by_element
def tanh(x: Array) -> Array:
    t = _expm1(np.minimum(np.abs(x), 22.0) * 2.0)
    return np.copysign(t / (t + 2.0), x)


@by_element
def asinh(x: Array) -> Array:
    a = np.abs(x)
    b = np.minimum(a, 1e9)
    y = _log1p(b + b * b / (np.sqrt(b * b + 1.0) + 1.0))
    return np.copysign(np.where(a > 1e9, _log(a) + (LN2[0] + LN2[1]), y), x)


@by_element
def acosh(x: Array) -> Array:
    t = np.minimum(x, 1e9) - 1.0
    y = np.where(x > 1e9, _log(x) + (LN2[0] + LN2[1]), _log1p(t + np.sqrt(t * 2.0 + t * t)))
    return np.where(x < 1.0, np.nan, y)


@by_element
def atanh(x: Array) -> Array:
    a = np.abs(x)
    return np.copysign(_log1p(a * 2.0 / (1.0 - a)) * 0.5, x)


@by_element
def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + _exp(-x))


@by_element
def logaddexp(a: Array, b: Array) -> Array:
    """log(e^a + e^b), which does not overflow."""
    return np.where(a == b, a + (LN2[0] + LN2[1]), np.maximum(a, b) + _log1p(_exp(-np.abs(a - b))))


@by_element
def erf(x: Array) -> Array:
    """Up to 2 e^-x^2 times a series of positive terms (Abramowitz and Stegun, 7.1.6), then 1 less a continued fraction
    (7.1.14); 1 from 6 on."""
    a = np.abs(x)
    t = np.minimum(a, 6.0)
    high, low = product(t, t)
    bell, near = _exp(-high, -low), np.minimum(t, 2.0)
    term = total = near
    for n in range(1, 48):
        term = term * (near * near * 2.0) / (2 * n + 1)
        total = total + term
    far = np.maximum(t, 2.0)
    fraction = far
    for n in range(60, 0, -1):
        fraction = far + (n * 0.5) / fraction
    y = np.where(t < 2.0, bell * total * TWO_OVER_ROOT_PI, 1.0 - bell / (fraction * ROOT_PI))
    return np.copysign(np.where(a >= 6.0, 1.0, y), x)


exp, expm1, log = by_element(_exp), by_element(_expm1), by_element(_log)
log1p, power = by_element(_log1p), by_element(_power)

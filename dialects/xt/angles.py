"""Sines, tangents and their inverses of arrays, the same bits on every machine (:mod:`xcc.dialects.xt.elementary`)."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np

from xcc.dialects.xt.elementary import add, by_element, horner, product, two_sum
from xcc.dialects.xt.numeric import Array

BITS = 1280                 # of 2/pi, for arguments below 2**1024
FAR = 2.0**19               # up to here pi/2 in parts of 33 bits serves, beyond integers do
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
TWO_OVER_PI = 0.6366197723675814
ATAN_QUARTERS = np.array([[0.0, 0.24497866312686414, 0.4636476090008061, 0.6435011087932844, 0.7853981633974483],
                          [0.0, 1.0698755618734451e-17, 2.2698777452961687e-17, 1.5834785051444286e-17,
                           3.061616997868383e-17]])
"""atan of 0, 1/4, 1/2, 3/4 and 1 in two parts."""

_SIN = [float(Fraction((-1)**n, factorial(2 * n + 1))) for n in range(9, 0, -1)]
_COS = [float(Fraction((-1)**n, factorial(2 * n))) for n in range(9, 1, -1)]
_ATAN = [float(Fraction((-1)**n, 2 * n + 1)) for n in range(10, 0, -1)]


@cache
def _two_over_pi() -> int:
    """2**BITS * 2/pi."""
    more = BITS + 64
    return (2 << (more + BITS)) // pi_by_bits(more)


def pi_by_bits(bits: int) -> int:
    """2**bits * pi, by Machin's formula."""
    def arctan(n: int) -> int:
        term = total = (1 << bits) // n
        i = 1
        while term:
            term //= -n * n
            i += 2
            total += term // i
        return total

    return 4 * (4 * arctan(5) - arctan(239))


def _quadrants(x: Array) -> tuple[Array, Array, Array]:
    """(q, r, its lower part) with x = q*pi/2 + r up to whole turns; NaN where x is not finite."""
    x = np.where(np.isfinite(x), x, np.nan)
    k = np.where(np.abs(x) < FAR, np.rint(x * TWO_OVER_PI), 0.0)
    r = two_sum(x - k * HALF_PI_PARTS[0], -(k * HALF_PI_PARTS[1]))
    r = add(r, two_sum(-(k * HALF_PI_PARTS[2]), -(k * HALF_PI_PARTS[3])))
    for i in np.flatnonzero(np.abs(x) >= FAR):
        above, below = float(x[i]).as_integer_ratio()
        whole, turned = below << BITS, above * _two_over_pi()
        q = (2 * turned + whole) // (2 * whole)
        k[i], rest = q % 4, (turned - q * whole) / whole
        r[0][i], r[1][i] = product(rest, HALF_PI[0])
        r[1][i] += rest * HALF_PI[1]
    return np.mod(np.where(np.isnan(k), 0.0, k), 4.0).astype(np.int64), *r


def _sin_cos(x: Array) -> tuple[Array, Array, Array]:
    """(q, sin r, cos r)."""
    q, r, low = _quadrants(x)
    z = r * r
    s = r + (r * z * horner(z, _SIN) + low * (1.0 - z * 0.5))
    half = z * 0.5
    w = 1.0 - half
    return q, s, w + (((1.0 - w) - half) + (z * z * horner(z, _COS) - r * low))


@by_element
def sin(x: Array) -> Array:
    q, s, c = _sin_cos(x)
    y = np.where(q % 2 == 0, s, c)
    return np.where(x == 0, x, np.where(q >= 2, -y, y))


@by_element
def cos(x: Array) -> Array:
    q, s, c = _sin_cos(x)
    y = np.where(q % 2 == 0, c, s)
    return np.where((q == 1) | (q == 2), -y, y)


@by_element
def tan(x: Array) -> Array:
    q, s, c = _sin_cos(x)
    return np.where(x == 0, x, np.where(q % 2 == 0, s, -c) / np.where(q % 2 == 0, c, s))


def _angle(y: Array, x: Array) -> Array:
    """The angle of the point (x, y) of the first quadrant."""
    steep = y > x
    down, up = np.where(steep, x, y), np.where(steep, y, x)
    endless = np.isinf(up)
    down = np.where(endless, np.where(np.isinf(down), 1.0, 0.0), down)
    up = np.where(endless | (up == 0), 1.0, up)
    scale = np.where(up > 1e300, 2.0**-10, np.where(up < 1e-300, 2.0**60, 1.0))
    down, up = down * scale, up * scale
    quarters = np.rint(down / up * 4.0)
    c = quarters * 0.25
    t = (down - c * up) / (up + c * down)
    z = t * t
    place = np.where(np.isnan(quarters), 0, quarters).astype(np.int64)
    base = ATAN_QUARTERS[:, place]
    a, low = two_sum(base[0], t + (t * z * horner(z, _ATAN) + base[1]))
    return np.where(np.isnan(x + y), np.nan, np.where(steep, HALF_PI[0] - a + (HALF_PI[1] - low), a))


@by_element
def atan(x: Array) -> Array:
    return np.copysign(_angle(np.abs(x), np.ones_like(x)), x)


@by_element
def asin(x: Array) -> Array:
    a = np.abs(x)
    return np.copysign(_angle(a, np.sqrt((1.0 - a) * (1.0 + a))), x)


@by_element
def acos(x: Array) -> Array:
    return 2.0 * _angle(np.sqrt(1.0 - x), np.sqrt(1.0 + x))


@by_element
def atan2(y: Array, x: Array) -> Array:
    a = _angle(np.abs(y), np.abs(x))
    return np.copysign(np.where(np.signbit(x), 2 * HALF_PI[0] - a + 2 * HALF_PI[1], a), y)

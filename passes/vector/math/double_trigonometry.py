"""Sines, tangents and their inverses in f64 as lane code: at most 2 ULP off, tan at most 3, for arguments of any size.

Sources: the polynomials and the reductions of inverses are fdlibm's; x modulo pi/2 is M. Payne and R. Hanek, "Radian
reduction for trigonometric functions", 1983.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from xcc._mlir import ir
from xcc.dialects.xt.angles import pi_by_bits
from xcc.passes.shared.lanes import Lanes
from xcc.passes.vector.math.derived import Circular, angle
from xcc.passes.vector.math.double import times, two_sum

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_HALF_PI_REST = -1.4973849048591698e-33
_STEP, _PARTS = 26, 4
_SIN = [1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
        -1.98412698298579493134e-04, 8.33333333332248946124e-03]
_SIN_1 = -1.66666666666666324348e-01
_COS = [-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
        2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02]
_ASIN = ([3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
          2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01],
         [7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e+00,
          -2.40339491173441421878e+00, 1.0])
_ATAN = [1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
         -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
         9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
         -1.99999999998764832476e-01, 3.33333333333329318027e-01]
_ATAN_BASES = ((0.4375, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
               (0.6875, 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
               (1.1875, 1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17))
"""From where on atan(x) is atan(b) and that of (x - b) / (1 + b x): x, b, and atan(b) in two parts."""
_ATAN_FAR = 2.4375      # likewise, that of infinity and of -1 / x


@cache
def _two_over_pi() -> tuple[tuple[float, ...], ...]:
    """2**k * 2/pi modulo 4 in _PARTS parts, for k = 0, _STEP, 2*_STEP..."""
    bits = 1400
    ratio = Fraction(2 << bits, pi_by_bits(bits))
    out = []
    for k in range(0, 1024 - 52, _STEP):
        rest = ratio * (1 << k)
        rest -= 4 * round(rest / 4)
        parts = []
        for _ in range(_PARTS):
            parts.append(float(rest))
            rest -= Fraction(parts[-1])
        out.append(tuple(parts))
    return tuple(out)


def _modulo_four(p: Lanes) -> Lanes:
    """p less a multiple of 4, from -2 to 2; exact."""
    return (p * 0.25).unary("math.roundeven").fma(-4.0, p)


def _quadrants(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(r, its lower part, q in i64) with x = q*pi/2 + r up to whole turns, |r| <= pi/4 and a little, for every x.

    With x = m * 2**k and whole m what 2**k * 2/pi has of multiples of 4 is whole turns. The f64 nearest to a multiple
    of pi/2 is 2**-61 off, what is lost here 2**-130.
    """
    table = _two_over_pi()
    size = x.abs()
    scale, parts = x.const(2.0**(-_STEP * (len(table) - 1))), [x.const(c) for c in table[-1]]
    for j in range(len(table) - 2, -1, -1):
        below = size.compare("olt", 2.0**(_STEP * (j + 1) + 52))
        scale = below.select(2.0**(-_STEP * j), scale)
        parts = [below.select(c, other) for c, other in zip(table[j], parts, strict=True)]
    m = x * scale
    products = [times(m, c) for c in parts]
    a = _modulo_four(products[0][0])
    b, lost = two_sum(a, _modulo_four(products[0][1]))
    c, more = two_sum(b, _modulo_four(products[1][0]))
    q = c.unary("math.roundeven")
    total, low = two_sum(c - q, lost)
    for term in (more, products[1][1], products[2][0], products[2][1] + products[3][0]):
        total, error = two_sum(total, term)
        low = low + error
    r, tail = times(total, total.const(_HALF_PI[0]))
    tail = total.fma(_HALF_PI[1], low.fma(_HALF_PI[0], tail))
    return r, tail, q.cast("fptosi", ir.IntegerType.get_signless(64))


def _near(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """As `_quadrants`, for |x| < 2**20, with pi/2 in three parts (W. J. Cody and W. Waite, "Software manual for the
    elementary functions", 1980): the first times q is taken from x exactly, as both end with 2**-52."""
    magic = 6755399441055744.0
    t = x.fma(0.6366197723675814, magic)
    q = t - magic
    first = q.fma(-_HALF_PI[0], x)
    second, rest = times(q, q.const(_HALF_PI[1]))
    r = first - second
    return r, (first - r - second) - q.fma(_HALF_PI_REST, rest), t.bits()


def _far(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """`_quadrants`, NaN for what is not finite."""
    finite = x.abs().compare("olt", math.inf)
    r, low, q = _quadrants(finite.select(x, 0.0))
    return finite.select(r, math.nan), low, q


def _sin_cos(r: Lanes, low: Lanes) -> tuple[Lanes, Lanes]:
    """(sin, cos) of r + low."""
    z = r * r
    v = z * r
    s = r - ((z * (low * 0.5 - v * z.poly(_SIN)) - low) - v * _SIN_1)
    half = z * 0.5
    w = half.const(1.0) - half
    c = w + (((w.const(1.0) - w) - half) + (z * (z * z.poly(_COS)) - r * low))
    return s, c


_CIRCULAR = Circular(_sin_cos, 2, _near, 2.0**20, _far, 62, lambda x: x.abs().compare("olt", 2.0**-27))
sin, cos, tan = _CIRCULAR.sin, _CIRCULAR.cos, _CIRCULAR.tan


def _asin_rest(z: Lanes) -> Lanes:
    """(asin(x) - x) / x for z = x*x <= 1/4."""
    return z * z.poly(_ASIN[0]) / z.poly(_ASIN[1])


def _lost(root: Lanes, z: Lanes) -> Lanes:
    """What rounding lost of the root of `z`."""
    return z.compare("oeq", 0.0).select(0.0, (-root).fma(root, z) / (root + root))


def asin(x: Lanes) -> Lanes:
    a = x.abs()
    far = a.compare("ogt", 0.5)
    z = far.select((1.0 - a) * 0.5, a * a)
    root = far.select(z.sqrt(), a)
    lost = _lost(root, z)
    y = _asin_rest(z).fma(root, root)
    beyond = (root.const(_HALF_PI[0]) - (y + y)) - ((lost + lost) - _HALF_PI[1])
    return far.select(beyond, y).copysign(x)


def acos(x: Lanes) -> Lanes:
    a = x.abs()
    far = a.compare("ogt", 0.5)
    z = far.select((1.0 - a) * 0.5, x * x)
    root = far.select(z.sqrt(), x)
    y = _asin_rest(z).fma(root, root)
    near = root.const(_HALF_PI[0]) - (x - (_asin_rest(z).fma(-x, x.const(_HALF_PI[1]))))
    twice = (y + _lost(root, z)) * 2.0
    edge = x.compare("olt", 0.0).select((twice.const(2 * _HALF_PI[0]) - twice) + 2 * _HALF_PI[1], twice)
    return far.select(edge, near)


def _atan_positive(t: Lanes) -> Lanes:
    """atan for t >= 0, inf included."""
    down, high, low = t, t.const(0.0), t.const(0.0)
    for start, b, base, rest in _ATAN_BASES:
        above = t.compare("ogt", start)
        down = above.select((t - b) / t.fma(b, 1.0), down)
        high, low = above.select(base, high), above.select(rest, low)
    above = t.compare("ogt", _ATAN_FAR)
    down = above.select(-1.0 / t, down)
    high, low = above.select(_HALF_PI[0], high), above.select(_HALF_PI[1], low)
    z = down * down
    s = z * z.poly(_ATAN)
    return high - ((down * s - low) - down)


def atan(x: Lanes) -> Lanes:
    return _atan_positive(x.abs()).copysign(x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    return angle(y, x, _atan_positive, (2 * _HALF_PI[0], 2 * _HALF_PI[1]))

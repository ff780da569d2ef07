"""Sines, tangents and their inverses in f32 as lane code (see elementary.py for errors and sources)."""

from __future__ import annotations

import math

from xcc._mlir import ir
from xcc.passes.shared.lanes import Lanes
from xcc.passes.vector.math.derived import Circular, angle

_NAN = math.nan


_TWO_OVER_PI = (
    (2.0**50, 0, (0.6366197690367699, 3.3308114738561656e-09, 2.276010073078396e-18)),
    (2.0**76, 26, (1.72352696955204, 4.8093533183690695e-09, 5.1651711996897015e-18)),
    (2.0**102, 52, (1.3227502331137657, 5.003241640433309e-09, 4.220776518111768e-18)),
    (math.inf, 78, (1.8357618600130081, 3.0772192294303835e-09, 1.1744408199816128e-17)),
)
"""For |x| below the first number, which is m * 2**k: 2**k * 2/pi modulo 4, as m times a multiple of 4 is whole turns.
In three parts: the first end with the bits 2**-27 and 2**-56, so that their products with the 24 bits of m are exact.
"""


_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""pi/2 in three numbers of f32."""


def _modulo_four(p: Lanes) -> Lanes:
    """p less a multiple of 4, from -2 to 2, for |p| < 2**53 in f64."""
    magic = 27021597764222976.0
    return p - ((p + magic) - magic)


def _quadrants(x: Lanes) -> tuple[Lanes, Lanes]:
    """(r in f32, q in i32) with x = q*pi/2 + r up to whole turns, |r| <= pi/4 and a hundredth; in f64, for every x.

    The bits of 2/pi that count are those from x's exponent on: M. Payne and R. Hanek, "Radian reduction for
    trigonometric functions", 1983. The f32 nearest to a multiple of pi/2 is 2**-30 off, what is lost here 2**-54.
    """
    wide = x.cast("extf", ir.F64Type.get())
    size = wide.abs()
    _, k, parts = _TWO_OVER_PI[-1]
    scale, (a, b, rest) = wide.const(2.0**-k), [wide.const(c) for c in parts]
    for end, k, parts in _TWO_OVER_PI[-2::-1]:
        below = size.compare("olt", end)
        scale = below.select(2.0**-k, scale)
        a, b, rest = (below.select(c, other) for c, other in zip(parts, (a, b, rest), strict=True))
    m = wide * scale
    fa, fb = _modulo_four(m * a), _modulo_four(m * b)
    magic = 6755399441055744.0
    t = (fa + fb) + magic
    turn = m.fma(rest, (fa - (t - magic)) + fb)
    q = t.bits().cast("trunci", ir.IntegerType.get_signless(32))
    return (turn * 1.5707963267948966).cast("truncf", ir.F32Type.get()), q


def _near(x: Lanes) -> tuple[Lanes, Lanes]:
    """As `_quadrants`, for |x| < 2**16, in f32 alone: pi/2 in three parts (W. J. Cody and W. Waite, "Software manual
    for the elementary functions", 1980). The first times q is taken from x exactly, as both end with 2**-23."""
    magic = 12582912.0
    t = x.fma(0.6366197723675814, magic)
    q, r = t - magic, x
    for part in _HALF_PI:
        r = q.fma(-part, r)
    return r, t.bits()


def _sin_cos(r: Lanes) -> tuple[Lanes, Lanes]:
    """(sin r, cos r)."""
    z = r * r
    s = (z * r).fma(z.poly([-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]), r)
    c = (z * z).fma(z.poly([2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]), z.fma(-0.5, 1.0))
    return s, c


_CIRCULAR = Circular(_sin_cos, 1, _near, 2.0**16, _quadrants, 30, lambda x: x.compare("oeq", 0.0))
sin, cos, tan = _CIRCULAR.sin, _CIRCULAR.cos, _CIRCULAR.tan


def _asin_near(x: Lanes) -> Lanes:
    """asin for |x| <= 0.5."""
    z = x * x
    p = z.poly([4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1])
    return (p * z).fma(x, x)


def asin(x: Lanes) -> Lanes:
    a = x.abs()
    far = a.compare("ogt", 0.5)
    root = ((1.0 - a) * 0.5).sqrt()
    y = _asin_near(far.select(root, a))
    return far.select((y.const(0.7853981633974483) - y) * 2.0 + -4.371139e-08, y).copysign(x)


def acos(x: Lanes) -> Lanes:
    a = x.abs()
    far = a.compare("ogt", 0.5)
    y = _asin_near(far.select(((1.0 - a) * 0.5).sqrt(), x))
    twice = y * 2.0
    edge = x.compare("olt", 0.0).select((twice.const(3.1415927410125732) - twice) + -8.742278e-08, twice)
    return far.select(edge, (y.const(1.5707963705062866) - y) + -4.371139e-08)


def _atan_positive(t: Lanes) -> Lanes:
    """atan for t >= 0, inf included."""
    big, middle = t.compare("ogt", 2.414213562373095), t.compare("ogt", 0.4142135623730950)
    down = big.select(-1.0 / t, middle.select((t - 1.0) / (t + 1.0), t))
    base = big.select(t.const(1.5707963267948966), middle.select(t.const(0.7853981633974483), 0.0))
    low = big.select(t.const(-4.371139e-08), middle.select(t.const(-2.1855695e-08), 0.0))
    z = down * down
    p = z.poly([8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1])
    return base + ((p * z).fma(down, down) + low)


def atan(x: Lanes) -> Lanes:
    return _atan_positive(x.abs()).copysign(x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    return angle(y, x, _atan_positive, (3.1415927410125732, -8.742278e-08))

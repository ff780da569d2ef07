"""Elementary functions in f64 as lane code, at most 2 ULP off; hyperbolic functions and their inverses at most 4.

Sources: the reductions and polynomials are those of fdlibm (log); erf's are interpolations at Chebyshev nodes, of
erf(x) / x on [0, 1] and of erfc(x) * exp(x^2) * (x + 3) over (x - 3) / (x + 3) on [1, 6]. A value in two parts is
(high, low).
"""

from __future__ import annotations

import math

from xcc._mlir import ir
from xcc.passes.shared.lanes import Lanes
from xcc.passes.vector.math import derived
from xcc.passes.vector.math.derived import Hyperbolic
from xcc.passes.vector.math.elementary import log_special, special_power

_INF = math.inf
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)     # the first part has 32 bits
_ROUND, _ROUND_BITS = 6755399441055744.0, 0x4338000000000000
_EXP = [1.0 / math.factorial(i) for i in range(14, 1, -1)]
_LOG = [1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
        2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01]
_ROOT_HALF = 0x3FE6A09E667F3BCD
_ERF_NEAR = [5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07,
             1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379,
             0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 0.1283791670955126]
_ERF_FAR = [-2.1233778837569286e-07, -3.7528910345183225e-07, 9.986233716523795e-07, 2.755707978377148e-06,
            -4.750676495984194e-06, -1.7468933730392372e-05, 3.039856649401349e-05, 0.00010756130476593532,
            -0.00027677790441362594, -0.0005483096774299844, 0.0030340620062779037, -0.0012124166279635193,
            -0.026827234624732597, 0.11952776128731231, -0.31046726190056156, 0.5902283571041016,
            -0.8833944531698836, 1.0740069070883398]


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """a + b rounded, and what rounding lost."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def times(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """a * b rounded, and what rounding lost."""
    p = a * b
    return p, a.fma(b, -p)


def _power_of_two(n: Lanes) -> Lanes:
    """2**n for integers n in [-1022, 1023]."""
    return ((n + 1023) << 52).bits()


def _in_two_steps(p: Lanes, n: Lanes) -> Lanes:
    half = n.sar(1)
    return p * _power_of_two(half) * _power_of_two(n - half)


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """(r, n) with x = n*ln2 + r."""
    t = x.fma(1.4426950408889634, _ROUND)
    nf = t - _ROUND
    return nf.fma(-_LN2[1], nf.fma(-_LN2[0], x)), t.bits() - _ROUND_BITS


def exp(x: Lanes) -> Lanes:
    r, n = _reduced(x.at_most(710.0).at_least(-746.0))
    return _in_two_steps(r.poly([*_EXP, 1.0, 1.0]), n)


def exp2(x: Lanes) -> Lanes:
    x = x.at_most(1025.0).at_least(-1080.0)
    t = x + _ROUND
    r = (x - (t - _ROUND)) * 0.6931471805599453
    return _in_two_steps(r.poly([*_EXP, 1.0, 1.0]), t.bits() - _ROUND_BITS)


def expm1(x: Lanes) -> Lanes:
    r, n = _reduced(x.at_most(710.0).at_least(-40.0))
    e = (r * r).fma(r.poly(_EXP), r)
    half = _power_of_two(n - 1)
    return x.abs().compare("olt", 2.0**-54).select(x, e.fma(half, half - 0.5) * 2.0)


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """(m, k) with x = 2**k * m and m in [sqrt(1/2), sqrt(2)); k in f64."""
    small = x.compare("olt", 2.0**-1022)
    bits = small.select(x * 2.0**54, x).bits() - _ROOT_HALF
    k = bits.sar(52).cast("sitofp", ir.F64Type.get())
    return ((bits & 0xFFFFFFFFFFFFF) + _ROOT_HALF).bits(), small.select(k - 54.0, k)


def _log_parts(x: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """(f, f*f/2, s*(f*f/2 + R), k) with x = 2**k * (1 + f) and log(1 + f) = f - f*f/2 + s*(f*f/2 + R)."""
    m, k = _split(x)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    return f, h, s * (h + z * z.poly(_LOG)), k


def log(x: Lanes) -> Lanes:
    f, h, t, k = _log_parts(x)
    return log_special(x, k.fma(_LN2[0], (k.fma(_LN2[1], t) - h) + f))


def _log_base(x: Lanes, hi: float, lo: float, k_hi: float, k_lo: float) -> Lanes:
    """log(x)/log(base), the reciprocal given in two parts, the first short enough for exact products."""
    f, h, t, k = _log_parts(x)
    top = ((f - h).bits() & -(1 << 32)).bits()
    rest = ((f - top) - h) + t
    whole, lost = two_sum(k * k_hi, top * hi)
    return log_special(x, whole + rest.fma(hi, (rest + top).fma(lo, k.fma(k_lo, lost))))


def log2(x: Lanes) -> Lanes:
    return _log_base(x, 1.44269504072144627571e+00, 1.67517131648865118353e-10, 1.0, 0.0)


def log10(x: Lanes) -> Lanes:
    return _log_base(x, 4.34294481878168880939e-01, 2.50829467116452752298e-11, 3.01029995663611771306e-01,
                     3.69423907715893078616e-13)


def log1p(x: Lanes) -> Lanes:
    y = derived.log1p(x, log)
    y = x.compare("uno", x).select(x, y)
    return x.abs().compare("olt", 2.0**-54).select(x, y)


def tanh(x: Lanes) -> Lanes:
    t = expm1(x.abs().at_most(22.0) * 2.0)
    return (t / (t + 2.0)).copysign(x)


_HYPERBOLIC = Hyperbolic(exp, expm1, log, log1p, far=22.0, huge=1e9)
sinh, cosh = _HYPERBOLIC.sinh, _HYPERBOLIC.cosh
asinh, acosh, atanh = _HYPERBOLIC.asinh, _HYPERBOLIC.acosh, _HYPERBOLIC.atanh


def erf(x: Lanes) -> Lanes:
    a = x.abs()
    t = a.at_most(6.0)
    far = t.const(1.0) - ((t - 3.0) / (t + 3.0)).poly(_ERF_FAR) * exp(-(t * t)) / (t + 3.0)
    near = (x * x).poly(_ERF_NEAR).fma(x, x)
    return a.compare("olt", 1.0).select(near, far.copysign(x))


def cbrt(x: Lanes) -> Lanes:
    """The exponent's third by integers, then Halley's steps on a mantissa in [1, 8)."""
    a = x.abs()
    small = a.compare("olt", 2.0**-1022)
    bits = small.select(a * 2.0**54, a).bits()
    e = bits.shr(52) - 1023
    third = ((e + 3072) * 43691).shr(17) - 1024         # floor(e / 3)
    m = (bits - ((third * 3) << 52)).bits()             # in [1, 8)
    y = m.poly([-0.011, 0.22, 0.82])
    for _ in range(3):
        cube = y * y * y
        y = y * (m.fma(2.0, cube) / cube.fma(2.0, m))
    square, lost = times(y, y)
    y = y + ((-y).fma(square, m) - y * lost) / (square * 3.0)
    y = y * _power_of_two(third) * small.select(y.const(2.0**-18), 1.0)
    y = a.compare("olt", _INF).select(y, a)
    return a.compare("oeq", 0.0).select(a, y).copysign(x)


def _log_in_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """log(x) for finite x > 0 in two parts, 2**-66 off: twice the series of atanh((m - 1) / (m + 1)), with the terms
    that count in two parts."""
    m, k = _split(x)
    f = m - 1.0
    d, d_low = two_sum(m, m.const(1.0))
    s = f / d
    s_low = (s.fma(-d, f) - s * d_low) / d
    u, u_low = times(s, s)
    u_low = u_low + s * s_low * 2.0
    rest = u * u.poly([2.0 / (2 * i + 1) for i in range(11, 1, -1)])
    a, b = two_sum(u.const(2.0 / 3.0), rest)
    b = b + (2.0 / 3.0) * 2.0**-54
    v, v_low = times(u, a)
    v_low = v_low + (u * b + u_low * a)
    t, t_low = times(s, v)
    t_low = t_low + (s * v_low + s_low * v)
    high, low = two_sum(s * 2.0, t)
    whole, lost = two_sum(k * _LN2[0], high)
    tail, tail_low = times(k, k.const(_LN2[1]))
    top, more = two_sum(whole, tail)
    return two_sum(top, (more + lost) + ((low + t_low) + (s_low * 2.0 + tail_low)))


def power_positive(x: Lanes, y: Lanes) -> Lanes:
    """x**y for finite x > 0."""
    high, low = _log_in_parts(x)
    p = y * high
    inside = p.abs().compare("olt", 1000.0)
    lost = inside.select(y.fma(high, -p) + y * low, 0.0)
    r, n = _reduced(p.at_most(750.0).at_least(-760.0))
    return _in_two_steps((r + lost).poly([*_EXP, 1.0, 1.0]), n)


def power(x: Lanes, y: Lanes) -> Lanes:
    """x**y with the special cases of IEEE 754 pow."""
    return special_power(x, y, power_positive(x.abs(), y), 2.0**53)

"""Elementary functions in f32 (and what pow needs in f64) as lane code.

At most 2 ULP off; tan, the inverse and the hyperbolic functions at most 4.

Sources: the reductions and minimax polynomials are those of Cephes (sin, cos, asin, atan) and of
N. Juffa's published single-precision erf; the rest follows from these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from xcc._mlir import ir
from xcc.passes.shared.lanes import Lanes
from xcc.passes.shared.regions import either
from xcc.passes.vector.math import derived
from xcc.passes.vector.math.derived import Hyperbolic

_INF = math.inf
_NAN = math.nan
_LN2_HI, _LN2_LO = 0.693145751953125, 1.428606765330187e-06
_EXP = [1.3814540579915047e-3, 8.36874544620514e-3, 4.166838899254799e-2, 0.1666652113199234, 0.4999999403953552]
"""(e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, least relative error of e^r (3e-9), found by weighted least squares."""


_LOG = [-0.07634429633617401, 0.12761549651622772, -0.131601944565773, 0.14201761782169342, -0.16623356938362122,
        0.20001226663589478, -0.250008225440979, 0.3333333134651184]
"""(log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between the roots of 1/2 and of 2, least relative error of the logarithm
(8e-9), found by weighted least squares."""


LOWEST, LOWEST_SCALED = -248.0, -600.0
"""Exponents of exp's results that are 0, in two steps and by instructions for x * 2**n. Intel's processors take 200
cycles for what rounds to a subnormal number or is little below those, and one for 0 from further below."""


def _power_of_two(n: Lanes) -> Lanes:
    """2**n for integers n in [-126, 127], in f32."""
    return ((n + 127) << 23).bits()


def _round_to_int(x: Lanes, scale: float) -> tuple[Lanes, Lanes]:
    """round(x*scale) as f32 and i32, for results below 2**22."""
    magic = 12582912.0
    t = x.fma(scale, magic)
    return t - magic, t.bits() - 0x4B400000


def in_two_steps(p: Lanes, n: Lanes) -> Lanes:
    """p * 2**n, n from -250 to 254, so that results may be subnormal and n may be 128."""
    half = n.sar(1)
    return p * _power_of_two(half) * _power_of_two(n - half)


def _exp_argument(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(r, n in f32, n in i32) with x = n*ln2 + r."""
    nf, n = _round_to_int(x, 1.4426950408889634)
    return nf.fma(-_LN2_LO, nf.fma(-_LN2_HI, x)), nf, n


def _exp_reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """(expm1(r), n) with x = n*ln2 + r."""
    r, _, n = _exp_argument(x)
    return (r * r).fma(r.poly(_EXP), r), n


def _lowered(x: Lanes, least: float, lowest: float) -> Lanes:
    """`lowest` where x is less than `least`."""
    return x.compare("olt", least).select(x.const(lowest), x)


def exp(x: Lanes, lowest: float = LOWEST) -> Lanes:
    r, nf, n = _exp_argument(_lowered(x.at_most(89.0), -104.0, math.log(2.0) * lowest))
    return r.poly([*_EXP, 1.0, 1.0]).scaled(nf, n)


def exp2(x: Lanes, lowest: float = LOWEST) -> Lanes:
    x = _lowered(x.at_most(129.0), -150.0, lowest)
    nf, n = _round_to_int(x, 1.0)
    r = (x - nf) * 0.6931471805599453
    return r.poly([*_EXP, 1.0, 1.0]).scaled(nf, n)


def expm1(x: Lanes) -> Lanes:
    e, n = _exp_reduced(x.at_most(89.0).at_least(-20.0))
    half = _power_of_two(n - 1)
    return x.compare("oeq", 0.0).select(x, e.fma(half, half - 0.5) * 2.0)


def _logarithm(x: Lanes, branch: bool, made: Callable[[Lanes, Lanes, Lanes, Lanes], Lanes]) -> Lanes:
    """What is `made` of f, f*f/2, t and k with x = 2**k * (1 + f) and log(1 + f) = f - f*f/2 + t, or what is special.

    branch: whether lanes that are all positive and normal numbers take a way of their own.
    """
    def every() -> Lanes:
        small = x.compare("olt", 1.1754943508222875e-38)
        f, h, t, k = _log_parts(small.select(x * 33554432.0, x))
        return log_special(x, made(f, h, t, small.select(k - 25.0, k)))

    if not branch:
        return every()
    normal = (x.bits() - 0x800000).compare("ult", 0x7F000000).all()
    return Lanes(either(normal, x.type, lambda: made(*_log_parts(x)).v, lambda: every().v))


def _log_parts(x: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """As in `_logarithm`, for positive and normal x."""
    bits = x.bits() - 0x3F3504F3
    k = bits.sar(23).cast("sitofp", ir.F32Type.get())
    f = ((bits & 0x7FFFFF) + 0x3F3504F3).bits() - 1.0
    z = f * f
    return f, z * 0.5, z * f * f.poly(_LOG), k


def log_special(x: Lanes, y: Lanes) -> Lanes:
    """-inf at 0, NaN below it, inf and NaN as they are."""
    y = x.compare("olt", _INF).select(y, x)
    y = x.compare("olt", 0.0).select(_NAN, y)
    return x.compare("oeq", 0.0).select(-_INF, y)


def log(x: Lanes, branch: bool = False) -> Lanes:
    return _logarithm(x, branch, lambda f, h, t, k: k.fma(6.9313812256e-01, (k.fma(9.0580006145e-06, t) - h) + f))


def _log_base(x: Lanes, branch: bool, hi: float, lo: float, k_hi: float, k_lo: float) -> Lanes:
    """log(x)/log(base), the reciprocal given in two parts, the first short enough for exact products."""
    def made(f: Lanes, h: Lanes, t: Lanes, k: Lanes) -> Lanes:
        top = ((f - h).bits() & -4096).bits()
        rest = (f - top) - h + t
        y = k.fma(k_lo, (rest + top) * lo)
        return k.fma(k_hi, top.fma(hi, rest.fma(hi, y)))

    return _logarithm(x, branch, made)


def log2(x: Lanes, branch: bool = False) -> Lanes:
    return _log_base(x, branch, 1.4428710938, -1.7605285393e-04, 1.0, 0.0)


def log10(x: Lanes, branch: bool = False) -> Lanes:
    return _log_base(x, branch, 4.3432617188e-01, -3.1689971365e-05, 3.0102920532e-01, 7.9034151668e-07)


def log1p(x: Lanes, branch: bool = False) -> Lanes:
    y = derived.log1p(x, partial(log, branch=branch))
    return x.compare("oeq", 0.0).select(x, y)


def tanh(x: Lanes) -> Lanes:
    a = x.abs()
    t = expm1(a.at_most(10.0) * 2.0)
    z = x * x
    p = z.poly([-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1])
    return a.compare("olt", 0.625).select((p * z).fma(a, a), t / (t + 2.0)).copysign(x)


_HYPERBOLIC = Hyperbolic(exp, expm1, log, log1p, far=20.0, huge=1e8)
sinh, cosh = _HYPERBOLIC.sinh, _HYPERBOLIC.cosh
asinh, acosh, atanh = _HYPERBOLIC.asinh, _HYPERBOLIC.acosh, _HYPERBOLIC.atanh


def erf(x: Lanes) -> Lanes:
    t = x.abs().at_most(4.0)
    s = t * t
    r = t.fma(-1.72853470e-5, 3.83197126e-4)
    r = r.fma(s, t.fma(-3.88396438e-3, 2.42546219e-2))
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = r.fma(t, c)
    far = (1.0 - exp(r.fma(t, -t))).copysign(x)
    q = x * x
    near = q.poly([-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1])
    return t.compare("ogt", 0.927734375).select(far, near.fma(x, x))


def cbrt(x: Lanes) -> Lanes:
    a = x.abs()
    y = power_positive(a, None)
    y = a.compare("olt", _INF).select(y, a)
    return a.compare("oeq", 0.0).select(a, y).copysign(x)


def power_positive(x: Lanes, y: Lanes | None) -> Lanes:
    """x**y for x > 0 (y None: 1/3), through f64: log2 by the atanh series, exp2 by Taylor's."""
    f64 = ir.F64Type.get()
    wide = x.cast("extf", f64)
    bits = wide.bits() - 0x3FE6A09E667F3BCD
    k = bits.sar(52)
    m = ((bits & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).bits()
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z.poly([2.0 / (2 * i + 1) for i in range(9, -1, -1)])
    log2_x = (series * s).fma(1.4426950408889634, k.cast("sitofp", f64))
    exponent = log2_x * (y.cast("extf", f64) if y is not None else 1.0 / 3.0)
    exponent = exponent.at_most(300.0).at_least(-300.0)
    magic = 6755399441055744.0
    t = exponent + magic
    n = t.bits() - 0x4338000000000000
    r = (exponent - (t - magic)) * 0.6931471805599453
    p = r.poly([1.0 / math.factorial(i) for i in range(11, -1, -1)])
    return (p * ((n + 1023) << 52).bits()).cast("truncf", ir.F32Type.get())


def power(x: Lanes, y: Lanes) -> Lanes:
    """x**y with the special cases of IEEE 754 pow."""
    return special_power(x, y, power_positive(x.abs(), y), 2.0**24)


def special_power(x: Lanes, y: Lanes, r: Lanes, even: float) -> Lanes:
    """x**y, which is `r` for finite x > 0; numbers from `even` on are even."""
    a = x.abs()
    grows = y.compare("ogt", 0.0)
    r = a.compare("oeq", 0.0).select(grows.select(a.const(0.0), _INF), r)
    r = a.compare("oeq", _INF).select(grows.select(a.const(_INF), 0.0), r)
    above = a.compare("ogt", 1.0)
    endless = y.abs().compare("oeq", _INF)
    at_end = a.compare("oeq", 1.0).select(a.const(1.0), (above ^ (y.compare("olt", 0.0))).select(a.const(_INF), 0.0))
    r = endless.select(at_end, r)
    whole = y.unary("math.floor").compare("oeq", y)
    half = y * 0.5
    odd = whole & half.unary("math.floor").compare("one", half) & y.abs().compare("olt", even)
    negative = x.bits().compare("slt", 0)
    r = (negative & odd).select(-r, r)
    finite = a.compare("olt", _INF)
    bad = x.compare("olt", 0.0) & finite & (whole ^ True) & (endless ^ True)
    r = bad.select(_NAN, r)
    r = x.compare("uno", y).select(_NAN, r)
    one = x.compare("oeq", 1.0) | y.compare("oeq", 0.0)
    return one.select(1.0, r)

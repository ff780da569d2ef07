"""The gamma function and its derivatives, Bessel functions, what belongs to the error function: computed in f64, so
that cancellation near zeros and shifts of the argument cost an f32 result nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, inf, log, pi, sqrt

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import any_of, convert, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten

_SHIFT = 8
"""From here on the asymptotic series of the gamma function are exact to f64 (Abramowitz and Stegun, 6.1.41, 6.3.18)."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the coefficient of the highest power first."""
    out = scalar(coefficients[0], x)
    for c in coefficients[1:]:
        out = xt.add(xt.mul(out, x), scalar(c, x))
    return out


def compared(x: Value, direction: str, limit: float) -> Value:
    return xt.compare(x, scalar(limit, x), direction=direction)


def in_f64(function: Callable[[Value], Value]) -> Callable[[Context], Value]:
    """Of an op of one tensor, which schemas call "self" or "x"."""
    return lambda cx: convert(function(convert(cx.tensor(next(iter(cx.args))), "f64")), cx.out().dtype)


def _reflected(x: Value) -> tuple[Value, Value]:
    """Where x is below 1/2, and 1 - x there, else x."""
    low = compared(x, "lt", 0.5)
    return low, xt.select(low, xt.sub(scalar(1, x), x), x)


def _angle(x: Value) -> Value:
    """pi times what x is above a whole number, so that the sine of a large one is exact."""
    return xt.mul(xt.sub(x, xt.floor(x)), scalar(pi, x))


def log_gamma(x: Value) -> Value:
    """log |gamma(x)|: by its recurrence from `_SHIFT` on, by reflection below 1/2; inf at 0, -1, ..."""
    low, y = _reflected(x)
    small = compared(y, "lt", _SHIFT)
    z = xt.select(small, xt.add(y, scalar(_SHIFT, x)), y)
    skipped = y
    for n in range(1, _SHIFT):
        skipped = xt.mul(skipped, xt.add(y, scalar(n, x)))
    part = xt.sub(xt.mul(xt.sub(z, scalar(0.5, x)), xt.log(z)), z)
    rest = xt.div(polynomial(xt.reciprocal(xt.mul(z, z)), [b / (2 * n * (2 * n - 1)) for n, b in _down()]), z)
    out = xt.add(xt.add(part, scalar(log(2 * pi) / 2, x)), rest)
    out = xt.sub(out, xt.select(small, xt.log(skipped), scalar(0, x)))
    out = xt.select(low, xt.sub(scalar(log(pi), x), xt.add(xt.log(xt.sin(_angle(x))), out)), out)
    return xt.select(compared(xt.abs(x), "eq", inf), xt.abs(x), out)


def _down() -> list[tuple[int, float]]:
    """The Bernoulli numbers of 2n, the largest n first."""
    return [*enumerate(_BERNOULLI, 1)][::-1]


def _digamma(x: Value) -> Value:
    """The derivative of log gamma; nan at -1, -2, ..., -inf at 0 (inf at -0)."""
    low, y = _reflected(x)
    out = scalar(0, x)
    small = compared(y, "lt", _SHIFT)
    for n in range(_SHIFT):
        out = xt.sub(out, xt.reciprocal(xt.add(y, scalar(n, x))))
    z = xt.select(small, xt.add(y, scalar(_SHIFT, x)), y)
    square = xt.reciprocal(xt.mul(z, z))
    series = xt.mul(polynomial(square, [b / (2 * n) for n, b in _down()]), square)
    rest = xt.sub(xt.sub(xt.log(z), xt.div(scalar(0.5, x), z)), series)
    out = xt.add(xt.select(small, out, scalar(0, x)), rest)
    angle = _angle(x)
    out = xt.select(low, xt.sub(out, xt.mul(scalar(pi, x), xt.div(xt.cos(angle), xt.sin(angle)))), out)
    whole = xt.and_(compared(x, "lt", 0), xt.compare(x, xt.floor(x), direction="eq"))
    out = xt.select(whole, scalar(float("nan"), x), out)
    return xt.select(compared(x, "eq", 0), xt.neg(xt.reciprocal(x)), out)


def _zeta(s: Value, q: Value) -> Value:
    """Hurwitz's zeta function, the sum of (q + n)^-s, for s > 1 and q > 0: Euler's and Maclaurin's formula."""
    out, power = scalar(0, q), xt.neg(s)
    for n in range(_SHIFT):
        out = xt.add(out, xt.pow(xt.add(q, scalar(n, q)), power))
    z = xt.add(q, scalar(_SHIFT, q))
    first = xt.pow(z, power)
    out = xt.add(out, xt.mul(first, xt.add(xt.div(z, xt.sub(s, scalar(1, s))), scalar(0.5, q))))
    square, tail, rising = xt.reciprocal(xt.mul(z, z)), scalar(0, q), s
    for n, b in enumerate(_BERNOULLI, 1):
        tail = xt.add(tail, xt.mul(scalar(b / factorial(2 * n), q), rising))
        rising = xt.mul(xt.mul(rising, square), xt.mul(xt.add(s, scalar(2 * n - 1, s)), xt.add(s, scalar(2 * n, s))))
    out = xt.add(out, xt.div(xt.mul(first, tail), z))
    return xt.select(compared(q, "eq", inf), scalar(0, q), out)


@aten("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar")
def zeta(cx: Context) -> Value:
    """nan for s < 1 and q = inf, inf for s = 1 and at poles; of q below 0 for whole s alone, terms being added until it
    is not."""
    s, q = (convert(xt.broadcast(cx.value_of(cx[n]), shape=cx.out().shape), "f64") for n in ("self", "other"))
    pole = xt.and_(compared(q, "le", 0), xt.compare(q, xt.floor(q), direction="eq"))
    whole = xt.compare(s, xt.floor(s), direction="eq")
    low = xt.and_(xt.and_(compared(q, "lt", 0), compared(s, "gt", 1)), xt.and_(whole, xt.not_(pole)))

    def goes_on(_: Value, q: Value) -> Value:
        return any_of(compared(q, "lt", 0))

    def step(total: Value, q: Value) -> list[Value]:
        below = compared(q, "lt", 0)
        term = xt.select(below, xt.pow(xt.select(below, q, scalar(1, q)), xt.neg(s)), scalar(0, q))
        return [xt.add(total, term), xt.select(below, xt.add(q, scalar(1, q)), q)]

    nothing, nan = scalar(0, q), scalar(float("nan"), q)
    total, moved = xt.while_([xt.mul(nothing, s), xt.select(low, q, scalar(1, q))], goes_on, step)
    out = xt.add(total, _zeta(s, xt.select(low, moved, xt.select(pole, scalar(1, q), q))))
    out = xt.select(compared(s, "eq", inf), xt.pow(q, xt.neg(s)), out)
    out = xt.select(xt.or_(compared(q, "eq", inf), xt.and_(compared(q, "lt", 0), xt.not_(whole))), nan, out)
    out = xt.select(xt.or_(pole, compared(s, "eq", 1)), scalar(inf, q), out)
    return convert(xt.select(compared(s, "lt", 1), nan, out), cx.out().dtype)


@aten("polygamma")
def polygamma(cx: Context) -> Value:
    """The n-th derivative of digamma; below 1/2 by reflection, the n-th derivative of pi * cot(pi * x)."""
    n = int(cx["n"])
    x = convert(cx.tensor("self"), "f64")
    if n == 0:
        return convert(_digamma(x), cx.out().dtype)
    low, y = _reflected(x)
    out = xt.mul(scalar((-1.0) ** (n + 1) * factorial(n), x), _zeta(scalar(n + 1, x), y))
    angle = _angle(x)
    wave = xt.mul(scalar(pi ** (n + 1), x), polynomial(xt.div(xt.cos(angle), xt.sin(angle)), _cotangent(n)))
    other = xt.sub(out if n % 2 == 0 else xt.neg(out), wave)
    return convert(xt.select(low, other, out), cx.out().dtype)


def _cotangent(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial in cot, whose own is -1 - cot^2; the highest power first."""
    rising = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(rising)][1:]
        rising = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return rising[::-1]


def modified_bessel(order: int, scaled: bool) -> Callable[[Value], Value]:
    """The modified Bessel function of the first kind, times exp(-|x|) if scaled: the series of small ones and of large
    ones (Abramowitz and Stegun, 9.6.10, 9.7.1)."""
    near = [1 / (4.0 ** k * factorial(k) * factorial(k + order)) for k in range(40)][::-1]
    far = [1.0]
    for k in range(1, 16):
        far.append(far[-1] * ((2 * k - 1) ** 2 - 4 * order) / (8 * k))

    def function(x: Value) -> Value:
        y = xt.abs(x)
        series = polynomial(xt.mul(x, x), near)
        series = xt.mul(series, xt.mul(y, scalar(0.5, x))) if order else series
        tail = xt.div(polynomial(xt.reciprocal(y), far[::-1]), xt.sqrt(xt.mul(y, scalar(2 * pi, x))))
        close = compared(y, "lt", 14)
        out = xt.select(close, xt.mul(series, xt.exp(xt.neg(y))) if scaled else series,
                        tail if scaled else xt.mul(tail, xt.exp(y)))
        return xt.mul(out, xt.sign(x)) if order else out

    return function


def _erfc(x: Value, scaled: bool = False) -> Value:
    """1 - erf(x), times exp(x^2) if scaled; from 2 on, where that is a difference of near numbers, by the continued
    fraction x + 1/2 / (x + 2/2 / (x + 3/2 / ...)) (Abramowitz and Stegun, 7.1.14)."""
    square, y = xt.mul(x, x), x
    for k in range(30, 0, -1):
        y = xt.add(x, xt.div(scalar(k / 2, x), y))
    tail = xt.div(scalar(1 / sqrt(pi), x), y)
    tail = tail if scaled else xt.mul(tail, xt.exp(xt.neg(square)))
    near = xt.sub(scalar(1, x), xt.erf(x))
    near = xt.mul(near, xt.exp(square)) if scaled else near
    return xt.select(compared(x, "gt", 2), tail, near)


_CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)
_ENDS = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
         1.00167406, 2.83297682)
"""Of erfinv(x) / x in w - 2.5 and sqrt(w) - 3, w = -log(1 - x^2) (Giles, Approximating the erfinv function, 2012)."""


def _erfinv(x: Value) -> Value:
    """inf at 1, nan beyond."""
    a = xt.abs(x)
    beyond = xt.sub(scalar(1, x), a)
    y = _nearer(_giles(beyond, a), beyond)
    return xt.select(compared(a, "eq", 1), xt.mul(x, scalar(inf, x)), xt.mul(y, xt.sign(x)))


def _giles(beyond: Value, a: Value) -> Value:
    """About erfinv(a) of a = 1 - beyond, which is 0 to 1."""
    w = xt.neg(xt.log(xt.mul(beyond, xt.add(scalar(1, a), a))))
    near = polynomial(xt.sub(w, scalar(2.5, a)), _CENTRE)
    far = polynomial(xt.sub(xt.sqrt(w), scalar(3, a)), _ENDS)
    return xt.mul(xt.select(compared(w, "lt", 5), near, far), a)


def _nearer(y: Value, beyond: Value) -> Value:
    """A step of Newton's to where erfc is `beyond`."""
    slope = xt.mul(xt.exp(xt.mul(y, y)), scalar(sqrt(pi) / 2, y))
    return xt.sub(y, xt.mul(xt.sub(beyond, _erfc(y)), slope))


def _ndtri(p: Value) -> Value:
    """Below what a normal number is with the probability p; infinite at 0 and 1, nan outside. At the far end it begins
    with a fixed point of y^2 = -log(erfc(y) sqrt(pi) y)."""
    low = compared(p, "lt", 0.5)
    beyond = xt.mul(scalar(2, p), xt.select(low, p, xt.sub(scalar(1, p), p)))
    far = xt.sqrt(xt.neg(xt.log(beyond)))
    for _ in range(4):
        far = xt.sqrt(xt.neg(xt.log(xt.mul(beyond, xt.mul(scalar(sqrt(pi), p), far)))))
    y = xt.select(compared(beyond, "lt", 1e-7), far, _giles(beyond, xt.sub(scalar(1, p), beyond)))
    y = xt.mul(scalar(sqrt(2), p), _nearer(_nearer(y, beyond), beyond))
    y = xt.select(compared(beyond, "eq", 0), scalar(inf, p), y)
    return xt.select(low, xt.neg(y), y)


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "lgamma": log_gamma, "digamma": _digamma, "erfinv": _erfinv, "erfc": _erfc,
    "special_erfcx": lambda x: _erfc(x, scaled=True), "i0": modified_bessel(0, False),
    "special_i0e": modified_bessel(0, True), "special_ndtri": _ndtri, "special_i1": modified_bessel(1, False),
    "special_i1e": modified_bessel(1, True)}
for _name, _function in _FUNCTIONS.items():
    aten(_name)(in_f64(_function))


@aten("hypot")
def hypot(cx: Context) -> Value:
    """sqrt(self^2 + other^2) without an overflow between."""
    return length(*cx.operands("self", "other", dtype=cx.out().dtype))


def length(x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2)"""
    x, y = xt.abs(x), xt.abs(y)
    large, small = xt.maximum(x, y), xt.minimum(x, y)
    ratio = xt.select(compared(large, "eq", 0), large, xt.div(small, large))
    out = xt.mul(large, xt.sqrt(xt.add(xt.mul(ratio, ratio), scalar(1, x))))
    return xt.select(compared(large, "eq", inf), large, out)

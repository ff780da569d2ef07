"""Bessel functions of orders 0 and 1, in f64: near 0 by the functions without a pole or a logarithm that they are made
of, as Chebyshev series, far from it by their asymptotic ones.

The coefficients are computed from exact values: a power series would lose what its large terms cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import cos, exp, factorial, fsum, inf, nan, pi, sqrt

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import scalar
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.special import compared, in_f64, modified_bessel, polynomial

_FAR, _LARGE = 20, 2
"""Where the asymptotic series are exact to f64, of the oscillating functions; from where on exp(x) K(x) is smooth."""
_EULER = 0.5772156649015329
_HARMONIC = [*accumulate((Fraction(1, k) for k in range(1, 72)), initial=Fraction(0))]

Term = Callable[[int], Fraction]


def _chebyshev(function: Callable[[float], float], count: int) -> tuple[float, ...]:
    """The first `count` coefficients of the Chebyshev series of a function on [-1, 1]."""
    angles = [pi * (k + 0.5) / count for k in range(count)]
    values = [function(cos(a)) for a in angles]
    sums = (fsum(v * cos(n * a) for v, a in zip(values, angles, strict=True)) for n in range(count))
    return tuple(s * (2 if n else 1) / count for n, s in enumerate(sums))


def _clenshaw(u: Value, coefficients: Sequence[float]) -> Value:
    """The sum of a Chebyshev series at u (Clenshaw's recurrence)."""
    one, two = scalar(0, u), scalar(0, u)
    twice = xt.mul(scalar(2, u), u)
    for c in coefficients[:0:-1]:
        one, two = xt.add(xt.sub(xt.mul(twice, one), two), scalar(c, u)), one
    return xt.add(xt.sub(xt.mul(u, one), two), scalar(coefficients[0], u))


def _entire(x: Value, limit: int, term: Term) -> Value:
    """The sum of term(k) * (x / 2)^(2 k), k = 0, 1, ..., up to |x| = limit."""
    u = xt.sub(xt.mul(xt.mul(x, x), scalar(2 / limit ** 2, x)), scalar(1, x))
    return _clenshaw(u, _coefficients(limit, term))


@cache
def _coefficients(limit: int, term: Term) -> tuple[float, ...]:
    def exact(u: float) -> float:
        square, power, total = (Fraction(u) + 1) * limit ** 2 / 8, 1 << 160, Fraction(0)
        for k in range(70 if limit == _FAR else 20):        # powers in fixed point, of 160 bits behind it
            total += term(k) * power
            power = power * square.numerator // square.denominator
        return float(total / (1 << 160))

    return _chebyshev(exact, 28 if limit == _FAR else 14)


def _j(order: int, sign: int = -1) -> Term:
    """Of J (I, for sign 1) over (x / 2)^order: Abramowitz and Stegun, 9.1.10."""
    return lambda k: Fraction(sign ** k, factorial(k) * factorial(k + order))


def _y(order: int, sign: int = -1) -> Term:
    """Of what Y and K have beside the logarithm and the pole: 9.1.11."""
    return lambda k: _j(order, sign)(k) * (_HARMONIC[k] + _HARMONIC[k + order]) / 2


_J, _Y, _I, _K = ([f(order, sign) for order in (0, 1)] for sign in (-1, 1) for f in (_j, _y))


def _hankel(x: Value, order: int) -> tuple[Value, Value, Value]:
    """Of x above _FAR: sqrt(1 / (pi x)) and the two sums that its cosine and sine are multiplied by (9.2.5)."""
    terms = [1.0]
    for k in range(1, 32):
        terms.append(terms[-1] * (4 * order - (2 * k - 1) ** 2) / (8 * k))
    signs = [(-1) ** (k // 2) for k in range(32)]
    inverse = xt.reciprocal(x)
    square = xt.mul(inverse, inverse)
    even, odd = (polynomial(square, [t * s for t, s in zip(terms[n::2], signs[n::2], strict=True)][::-1])
                 for n in range(2))
    return xt.sqrt(xt.mul(inverse, scalar(1 / pi, x))), even, xt.mul(odd, inverse)


def _far(x: Value, order: int, second: bool) -> Value:
    """sqrt(2 / (pi x)) (P cos(a) - Q sin(a)), a = x - (order / 2 + 1 / 4) pi; P sin(a) + Q cos(a) if second"""
    factor, p, q = _hankel(x, order)
    c, s = xt.cos(x), xt.sin(x)
    cosine, sine = (xt.add(c, s), xt.sub(s, c)) if not order else (xt.sub(s, c), xt.neg(xt.add(s, c)))
    out = xt.add(xt.mul(p, sine), xt.mul(q, cosine)) if second else xt.sub(xt.mul(p, cosine), xt.mul(q, sine))
    return xt.mul(factor, out)


def _near(x: Value, order: int) -> Value:
    return _times_half(x, order, _entire(x, _FAR, _J[order]))


def _times_half(x: Value, order: int, value: Value) -> Value:
    return xt.mul(value, xt.mul(x, scalar(0.5, x))) if order else value


def _logarithm(x: Value) -> Value:
    return xt.add(xt.log(xt.mul(x, scalar(0.5, x))), scalar(_EULER, x))


def _first(order: int) -> Callable[[Value], Value]:
    """nan at inf, as torch has it; so has the second kind."""
    def function(x: Value) -> Value:
        y = xt.abs(x)
        close = compared(y, "le", _FAR)
        far = _far(xt.select(close, scalar(_FAR, x), y), order, second=False)
        out = xt.select(close, _near(y, order), far)
        return xt.mul(out, xt.sign(x)) if order else out

    return function


def _second(order: int) -> Callable[[Value], Value]:
    """-inf at 0, nan below."""
    def function(x: Value) -> Value:
        close = compared(x, "le", _FAR)
        rest = _times_half(x, order, _entire(x, _FAR, _Y[order]))
        near = xt.mul(scalar(2 / pi, x), xt.sub(xt.mul(_logarithm(x), _near(x, order)), rest))
        near = xt.sub(near, xt.div(scalar(2 / pi, x), x)) if order else near
        far = _far(xt.select(close, scalar(_FAR, x), x), order, second=True)
        return _of_positive(x, xt.select(close, near, far), -inf)

    return function


def _of_positive(x: Value, out: Value, at_0: float) -> Value:
    out = xt.select(compared(x, "eq", 0), scalar(at_0, x), out)
    return xt.select(compared(x, "lt", 0), scalar(nan, x), out)


def _modified_second(order: int, scaled: bool) -> Callable[[Value], Value]:
    """The modified function of the second kind, times exp(x) if scaled: inf at 0, nan below."""
    def function(x: Value) -> Value:
        small = compared(x, "le", _LARGE)
        main, rest = (_times_half(x, order, _entire(x, _LARGE, f[order])) for f in (_I, _K))
        near = xt.sub(rest, xt.mul(_logarithm(x), main))
        near = xt.add(xt.reciprocal(x), xt.neg(near)) if order else near
        y = xt.select(small, scalar(_LARGE, x), x)
        u = xt.sub(xt.div(scalar(2 * _LARGE, x), y), scalar(1, x))
        far = xt.div(_clenshaw(u, _decaying(order)), xt.sqrt(y))
        near, far = (xt.mul(near, xt.exp(x)), far) if scaled else (near, xt.mul(far, xt.exp(xt.neg(y))))
        return _of_positive(x, xt.select(small, near, far), inf)

    return function


@cache
def _decaying(order: int) -> tuple[float, ...]:
    """Of sqrt(x) exp(x) K(x) in 4 / x - 1: the integral of exp(-x cosh(t)) cosh(order t) over t (9.6.24), where
    sqrt(2 x) sinh(t / 2) is the variable, by the trapezoid rule."""
    def value(u: float) -> float:
        inverse = (u + 1) / (2 * _LARGE)
        terms = ((0.1 * n) ** 2 for n in range(-70, 71))
        return sqrt(2) * 0.05 * fsum(exp(-w) * (1 + order * w * inverse) / sqrt(1 + w * inverse / 2) for w in terms)

    return _chebyshev(value, 30)


def _spherical(x: Value) -> Value:
    """sin(x) / x"""
    out = xt.select(compared(x, "eq", 0), scalar(1, x), xt.div(xt.sin(x), x))
    return xt.select(compared(xt.abs(x), "eq", inf), scalar(0, x), out)


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "spherical_bessel_j0": _spherical,
    **{f"bessel_j{n}": _first(n) for n in range(2)}, **{f"bessel_y{n}": _second(n) for n in range(2)},
    **{f"modified_bessel_i{n}": modified_bessel(n, False) for n in range(2)},
    **{f"modified_bessel_k{n}": _modified_second(n, False) for n in range(2)},
    **{f"scaled_modified_bessel_k{n}": _modified_second(n, True) for n in range(2)}}
for _name, _function in _FUNCTIONS.items():
    aten(f"special_{_name}")(in_f64(_function))

"""Functions that are made of others in the same way for f32 and f64: sines, hyperbolic ones, their inverses, atan2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xcc._mlir import ir
from xcc.passes.shared.lanes import Lanes, with_element
from xcc.passes.shared.regions import any_of

Function = Callable[[Lanes], Lanes]


@dataclass(frozen=True)
class Hyperbolic:
    """Of `exp`, `expm1`, `log` and `log1p`.

    far: from there on e^-x is nothing beside e^x.
    huge: from there on 1 is nothing beside x^2; its square is a number.
    """

    exp: Function
    expm1: Function
    log: Function
    log1p: Function
    far: float
    huge: float

    def sinh(self, x: Lanes) -> Lanes:
        a = x.abs()
        t = self.expm1(a.at_most(self.far))
        return a.compare("olt", self.far).select((t + t / (t + 1.0)) * 0.5, self._half_exp(a)).copysign(x)

    def cosh(self, x: Lanes) -> Lanes:
        a = x.abs()
        e = self.exp(a.at_most(self.far))
        return a.compare("olt", self.far).select((e + 1.0 / e) * 0.5, self._half_exp(a))

    def _half_exp(self, a: Lanes) -> Lanes:
        """e^a / 2, which may be a number where e^a is not."""
        h = self.exp(a * 0.5)
        return h * 0.5 * h

    def asinh(self, x: Lanes) -> Lanes:
        a = x.abs()
        b = a.at_most(self.huge)
        q = b * b
        y = self.log1p(b + q / ((q + 1.0).sqrt() + 1.0))
        return a.compare("ogt", self.huge).select(self._log_twice(a), y).copysign(x)

    def acosh(self, x: Lanes) -> Lanes:
        t = x.at_most(self.huge) - 1.0
        y = self.log1p(t + t.fma(t, t * 2.0).sqrt())
        y = x.compare("ogt", self.huge).select(self._log_twice(x), y)
        return x.compare("olt", 1.0).select(math.nan, y)

    def _log_twice(self, x: Lanes) -> Lanes:
        return self.log(x) + 0.6931471805599453

    def atanh(self, x: Lanes) -> Lanes:
        a = x.abs()
        return (self.log1p(a * 2.0 / (1.0 - a)) * 0.5).copysign(x)


def angle(y: Lanes, x: Lanes, atan_positive: Function, pi: tuple[float, float]) -> Lanes:
    """atan2(y, x) by the arc tangent of numbers from 0 to infinity; `pi` in two parts."""
    a, b = y.abs(), x.abs()
    both = a.compare("oeq", b)
    t = atan_positive(both.select(a.compare("oeq", 0.0).select(a, 1.0), a / b))
    t = x.bits().compare("slt", 0).select((t.const(pi[0]) - t) + pi[1], t)
    return y.compare("uno", x).select(math.nan, t.copysign(y))


Quadrants = Callable[[Lanes], tuple[Lanes, ...]]
"""From x to r, in one part or two, and q with x = q*pi/2 + r up to whole turns, |r| <= pi/4 and a little."""


@dataclass(frozen=True)
class Circular:
    """Of `parts`, which makes sin r and cos r of r.

    pieces: of r.
    near, far: for numbers below `limit`, and for every x.
    sign: how far the sign lies above bit 1.
    tiny: what is its own sine and tangent.

    All functions take `branch`: whether lanes that are all near take a way of their own.
    """

    parts: Callable[..., tuple[Lanes, Lanes]]
    pieces: int
    near: Quadrants
    limit: float
    far: Quadrants
    sign: int
    tiny: Function

    def sin(self, x: Lanes, branch: bool = False) -> Lanes:
        s, c, q = self._parts(x, branch)
        y = self._signed((q & 1).compare("eq", 0).select(s, c), q)
        return self.tiny(x).select(x, y)

    def cos(self, x: Lanes, branch: bool = False) -> Lanes:
        s, c, q = self._parts(x, branch)
        return self._signed((q & 1).compare("eq", 0).select(c, s), q + 1)

    def tan(self, x: Lanes, branch: bool = False) -> Lanes:
        s, c, q = self._parts(x, branch)
        even = (q & 1).compare("eq", 0)
        return self.tiny(x).select(x, even.select(s, -c) / even.select(c, s))

    def _parts(self, x: Lanes, branch: bool) -> tuple[Lanes, Lanes, Lanes]:
        if not branch:
            *r, q = self.far(x)
            return *self.parts(*r), q
        near = x.abs().compare("olt", self.limit).all()
        whole = with_element(x.type, ir.IntegerType.get_signless(self.sign + 2))
        *r, q = map(Lanes, any_of(near, [*[x.type] * self.pieces, whole], lambda: [v.v for v in self.near(x)],
                                  lambda: [v.v for v in self.far(x)]))
        return *self.parts(*r), q

    def _signed(self, y: Lanes, flip: Lanes) -> Lanes:
        """y, negated where bit 1 of `flip` is set."""
        return (y.bits() ^ ((flip & 2) << self.sign)).bits()


def log1p(x: Lanes, log: Function) -> Lanes:
    """log(1 + x) where 1 + x is not 1."""
    u = x + 1.0
    lost = x.compare("olt", 1.0).select(x - (u - 1.0), x.const(1.0) - (u - x))
    y = log(u) + lost / u
    y = u.compare("ogt", 0.0).select(y, u.compare("oeq", 0.0).select(u.const(-math.inf), math.nan))
    return x.compare("oeq", math.inf).select(x, y)

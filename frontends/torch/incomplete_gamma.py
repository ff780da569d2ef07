"""The incomplete gamma functions, in f64."""

from __future__ import annotations

from math import inf

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import any_of, convert, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.special import compared, log_gamma

_PRECISE = 2.0**-52


def _gamma_series(a: Value, x: Value) -> Value:
    """The sum of x^n / ((a + 1) ... (a + n)), of which the next term is carried (Abramowitz and Stegun, 6.5.29)."""
    one = xt.add(xt.mul(a, scalar(0, a)), scalar(1, a))

    def goes_on(total: Value, term: Value, _: Value) -> Value:
        return any_of(xt.compare(term, xt.mul(total, scalar(_PRECISE, a)), direction="gt"))

    def step(total: Value, term: Value, at: Value) -> list[Value]:
        at = xt.add(at, scalar(1, a))
        term = xt.mul(term, xt.div(x, at))
        return [xt.add(total, term), term, at]

    return xt.while_([one, one, a], goes_on, step)[0]


def _gamma_fraction(a: Value, x: Value) -> Value:
    """The continued fraction of the upper incomplete gamma function (6.5.31), by Lentz' method: its value, the two
    quotients whose product is the next factor of that, and the number of the step."""
    b = xt.sub(xt.add(x, scalar(1, a)), a)
    least = scalar(1e-300, a)

    def goes_on(_: Value, above: Value, below: Value, at: Value) -> Value:
        wrong = xt.abs(xt.sub(xt.mul(above, below), scalar(1, a)))
        return any_of(xt.or_(xt.compare(wrong, scalar(_PRECISE, a), direction="gt"), compared(at, "lt", 1)))

    def step(value: Value, above: Value, below: Value, at: Value) -> list[Value]:
        at = xt.add(at, scalar(1, a))
        part, own = xt.mul(at, xt.sub(a, at)), xt.add(b, xt.mul(at, scalar(2, a)))
        below = xt.add(xt.mul(part, below), own)
        below = xt.reciprocal(xt.select(compared(below, "eq", 0), least, below))
        above = xt.add(own, xt.div(part, above))
        above = xt.select(compared(above, "eq", 0), least, above)
        return [xt.mul(value, xt.mul(above, below)), above, below, at]

    begun = xt.reciprocal(b)
    first = xt.mul(b, scalar(1e300, a))
    return xt.while_([begun, first, begun, xt.mul(b, scalar(0, a))], goes_on, step)[0]


@aten("igamma", "igammac")
def incomplete_gamma(cx: Context) -> Value:
    """The lower (upper, of igammac) incomplete gamma function of a and x over gamma(a): by the series up to x = a."""
    a, x = (convert(xt.broadcast(v, shape=cx.out().shape), "f64") for v in cx.operands("self", "other"))
    upper, one, nan = "igammac" in cx.node.op, scalar(1, x), scalar(float("nan"), x)
    inside = xt.and_(xt.and_(compared(a, "gt", 0), compared(x, "gt", 0)),
                     xt.and_(compared(a, "lt", inf), compared(x, "lt", inf)))
    near = xt.compare(x, xt.maximum(a, one), direction="le")
    first, rest = xt.and_(inside, near), xt.and_(inside, xt.not_(near))
    series = _gamma_series(xt.select(first, a, one), xt.select(first, x, one))
    fraction = _gamma_fraction(xt.select(rest, a, one), xt.select(rest, x, scalar(2, x)))
    weight = xt.exp(xt.sub(xt.sub(xt.mul(a, xt.log(x)), x), log_gamma(a)))
    low, high = xt.div(xt.mul(weight, series), a), xt.mul(weight, fraction)
    out = xt.select(near, xt.sub(one, low), high) if upper else xt.select(near, low, xt.sub(one, high))
    return convert(_at_the_edges(a, x, xt.select(inside, out, nan), scalar(1 - upper, x), scalar(int(upper), x)),
                   cx.out().dtype)


def _at_the_edges(a: Value, x: Value, out: Value, whole: Value, none: Value) -> Value:
    """`out` where a and x are numbers above 0; `whole` for x = inf and a = 0, `none` for x = 0 and a = inf."""
    nan = scalar(float("nan"), x)
    out = xt.select(compared(x, "eq", inf), whole, out)
    out = xt.select(xt.or_(compared(a, "eq", inf), compared(x, "eq", 0)), none, out)
    out = xt.select(compared(a, "eq", 0), xt.select(compared(x, "gt", 0), whole, nan), out)
    return xt.select(xt.or_(compared(xt.minimum(a, x), "lt", 0), compared(xt.minimum(a, x), "eq", inf)), nan, out)

"""Element-wise arithmetic with rules of its own: quotients that are rounded, powers, limits, shifts, signs."""

from __future__ import annotations

import math
from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import any_of, convert, element, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten


@aten("div.Tensor_mode", "div.Scalar_mode", "floor_divide", "floor_divide.Scalar")
def divide(cx: Context) -> Value:
    """self / other, rounded toward 0 (trunc) or down (floor)."""
    mode = cx["rounding_mode"] if "rounding_mode" in cx.args else "floor"
    a, b = cx.operands("self", "other", dtype=cx.out().dtype)
    if mode == "floor":
        return floor_divide(a, b)
    quotient = xt.div(a, b)
    return xt.trunc(quotient) if mode == "trunc" and category(element(a)) == 2 else quotient


def floor_divide(a: Value, b: Value) -> Value:
    """The quotient rounded down; of floats the nearest whole number to the exact one, as Python's."""
    if category(element(a)) != 2:
        odd = xt.compare(xt.rem(a, b), scalar(0, a), direction="ne")
        below = xt.compare(xt.compare(a, scalar(0, a), direction="lt"), xt.compare(b, scalar(0, b), direction="lt"),
                           direction="ne")
        quotient = xt.div(a, b)
        return xt.select(xt.and_(odd, below), xt.sub(quotient, scalar(1, quotient)), quotient)
    plain, left = xt.div(a, b), xt.rem(a, b)
    exact = xt.div(xt.sub(a, left), b)
    below = xt.compare(xt.compare(left, scalar(0, a), direction="lt"), xt.compare(b, scalar(0, b), direction="lt"),
                       direction="ne")
    below = xt.and_(below, xt.compare(left, scalar(0, a), direction="ne"))
    exact = xt.select(below, xt.sub(exact, scalar(1, exact)), exact)
    floor = xt.floor(exact)
    floor = xt.select(xt.compare(xt.sub(exact, floor), scalar(0.5, floor), direction="gt"),
                      xt.add(floor, scalar(1, floor)), floor)
    zero = xt.compare(b, scalar(0, b), direction="eq")
    return xt.select(zero, plain, floor)


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(cx: Context) -> Value:
    """self ** exponent; small exponents that are numbers are products, as in torch."""
    kind = cx.out().dtype
    if kind == "i1":
        base, exponent = cx.operands("self", "exponent", dtype=kind)
        return xt.or_(base, xt.not_(exponent))
    exponent = cx["exponent"]
    if category(kind) == 2 and isinstance(exponent, int | float) and not isinstance(exponent, bool):
        short = small_power(cx.value_of(cx["self"], kind), float(exponent))
        if short is not None:
            return short
    return xt.pow(*cx.operands("self", "exponent", dtype=kind))


def small_power(x: Value, exponent: float) -> Value | None:
    """x ** exponent without pow, None where it takes one."""
    if exponent < 0:
        positive = small_power(x, -exponent)
        return None if positive is None else xt.reciprocal(positive)
    if exponent == 0.5:
        return xt.sqrt(x)
    if exponent not in (1, 2, 3):
        return None
    out = x
    for _ in range(int(exponent) - 1):
        out = xt.mul(out, x)
    return out


@aten("clamp", "clamp.Tensor", "clamp_min", "clamp_min.Tensor", "clamp_max", "clamp_max.Tensor")
def clamp(cx: Context) -> Value:
    """min(max(self, low), high), NaN where any is."""
    kind = cx.out().dtype
    out = cx.value_of(cx["self"], kind)
    for name, limit in (("min", xt.maximum), ("max", xt.minimum)):
        if cx.args.get(name) is not None:
            out = limit(out, cx.value_of(cx[name], kind))
    return out


@aten("fma.default", namespace="prims")
def multiply_add(cx: Context) -> Value:
    """a * b + c, which torch makes of addcmul."""
    a, b, c = (cx.value_of(cx[name], cx.out().dtype) for name in cx.args)
    return xt.add(xt.mul(a, b), c)


@aten("log10")
def log10(cx: Context) -> Value:
    x = cx.value_of(cx["self"], cx.out().dtype)
    return xt.mul(xt.log2(x), scalar(math.log10(2), x))


@aten("exp2", "special_exp2")
def exp2(cx: Context) -> Value:
    return xt.exp2(cx.value_of(cx["self"], cx.out().dtype))


@aten("ldexp.Tensor")
def ldexp(cx: Context) -> Value:
    """self * 2^other; the power has the type of other, f32 for whole numbers."""
    kind = cx.dtype("other") if category(cx.dtype("other")) == 2 else "f32"
    power = xt.exp2(cx.value_of(cx["other"], kind))
    return xt.mul(*(cx.value_of(v, cx.out().dtype) for v in (cx["self"], power)))


@aten("round.decimals")
def round_decimals(cx: Context) -> Value:
    """Rounded at so many digits behind the point, before it where that is negative."""
    x, digits = cx.tensor("self"), cx["decimals"]
    if category(element(x)) != 2:
        return x
    ten = scalar(10.0 ** abs(digits), x)
    scaled = xt.mul(x, ten) if digits >= 0 else xt.div(x, ten)
    return xt.div(xt.round(scaled), ten) if digits >= 0 else xt.mul(xt.round(scaled), ten)


def _shift(builder: str) -> Callable[[Context], Value]:
    """Bits moved; by the width or more all of them are lost."""
    return lambda cx: getattr(xt, builder)(*cx.operands("self", "other", dtype=cx.out().dtype))


for _side in ("left", "right"):
    aten(*(f"bitwise_{_side}_shift.{form}" for form in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
         *(f"__{_side[0]}shift__.{form}" for form in ("Tensor", "Scalar")))(_shift(f"shift_{_side}"))

_BITS = {"f64": "i64", "f32": "i32", "f16": "i16", "bf16": "i16"}


def is_negative(x: Value) -> Value:
    """The sign bit, that of -0.0 too."""
    if element(x) in _BITS:
        x = xt.bitcast(x, dtype=_BITS[element(x)])
    return xt.compare(x, scalar(0, x), direction="lt")


@aten("signbit")
def signbit(cx: Context) -> Value:
    x = cx.tensor("self")
    return xt.not_(xt.compare(x, x, direction="eq")) if element(x) == "i1" else is_negative(x)


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(cx: Context) -> Value:
    """The magnitude of self with the sign of other."""
    magnitude, sign = cx.operands("self", "other", dtype=cx.out().dtype)
    magnitude = xt.abs(magnitude)
    return xt.select(is_negative(sign), xt.neg(magnitude), magnitude)


@aten("frexp.Tensor")
def frexp(cx: Context) -> tuple[Value, Value]:
    """self = mantissa * 2^exponent (i32) with a mantissa of 1/2 to 1; 0, infinities and NaN have the exponent 0."""
    x = convert(cx.tensor("self"), "f64")
    tiny = xt.compare(xt.abs(x), scalar(2.0**-1022, x), direction="lt")
    bits = xt.bitcast(xt.select(tiny, xt.mul(x, scalar(2.0**54, x)), x), dtype="i64")
    field = xt.scalar(0x7FF << 52, "i64")
    exponent = xt.shift_right(xt.and_(bits, field), xt.scalar(52, "i64"))
    exponent = xt.sub(exponent, xt.select(tiny, xt.scalar(1022 + 54, "i64"), xt.scalar(1022, "i64")))
    mantissa = xt.bitcast(xt.or_(xt.and_(bits, xt.not_(field)), xt.scalar(1022 << 52, "i64")), dtype="f64")
    plain = xt.and_(xt.is_finite(x), xt.compare(x, scalar(0, x), direction="ne"))
    return (convert(xt.select(plain, mantissa, x), cx.out(0).dtype),
            convert(xt.select(plain, exponent, xt.scalar(0, "i64")), cx.out(1).dtype))


@aten("gcd")
def gcd(cx: Context) -> Value:
    return _gcd(*_whole_pair(cx))


@aten("lcm")
def lcm(cx: Context) -> Value:
    """0 where one of the two is; in i64, whose lowest bits a narrower result has."""
    a, b = (convert(v, "i64") for v in _whole_pair(cx))
    divisor = _gcd(a, b)
    divisor = xt.select(xt.compare(divisor, scalar(0, a), direction="eq"), scalar(1, a), divisor)
    return convert(xt.abs(xt.mul(xt.div(a, divisor), b)), cx.out().dtype)


def _whole_pair(cx: Context) -> list[Value]:
    out = cx.out()
    return [xt.broadcast(v, shape=out.shape) for v in cx.operands("self", "other", dtype=out.dtype)]


def _gcd(a: Value, b: Value) -> Value:
    """Euclid's algorithm: (a, b) becomes (b, a % b) until no b is left."""

    def goes_on(_: Value, b: Value) -> Value:
        return any_of(xt.compare(b, scalar(0, b), direction="ne"))

    def step(a: Value, b: Value) -> list[Value]:
        done = xt.compare(b, scalar(0, b), direction="eq")
        return [xt.select(done, a, b), xt.select(done, b, xt.rem(a, xt.select(done, scalar(1, b), b)))]

    return xt.abs(xt.while_([a, b], goes_on, step)[0])


@aten("div.default", namespace="prims")
def quotient(cx: Context) -> Value:
    """Of whole numbers rounded toward 0."""
    return xt.div(*cx.operands("self", "other", dtype=cx.out().dtype))


@aten("sign", "sgn")
def sign(cx: Context) -> Value:
    """-1, 0 or 1; of NaN 0, as torch has it."""
    x = cx.tensor("self")
    kind = category(element(x))
    if kind == 0:
        return x
    return xt.sign(x) if kind == 1 else xt.select(xt.is_nan(x), scalar(0, x), xt.sign(x))


@aten("fmax", "fmin")
def number_limit(cx: Context) -> Value:
    """The larger or smaller; a number where one of the two is NaN."""
    a, b = cx.operands("self", "other", dtype=cx.out().dtype)
    limit = xt.maximum if "fmax" in cx.node.op else xt.minimum
    if category(element(a)) != 2:
        return limit(a, b)
    return xt.select(xt.is_nan(a), b, xt.select(xt.is_nan(b), a, limit(a, b)))


@aten("isnan", "isinf", "isfinite")
def special_values(cx: Context) -> Value:
    """Which elements are NaN, infinite, neither; whole numbers are always finite."""
    x = cx.tensor("self")
    name = cx.node.op.split(".")[1]
    if category(element(x)) != 2:
        return xt.broadcast(xt.scalar(name == "isfinite", "i1"), shape=xt.shape_of(x))
    return {"isnan": xt.is_nan, "isinf": xt.is_inf, "isfinite": xt.is_finite}[name](x)

"""Pointwise ops: one parallel generic each, operands read with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Type, Value, arith_d, ir, math_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import (
    computed,
    constant,
    is_bool,
    is_coded,
    is_float,
    is_unsigned,
    stored,
    width,
)
from xcc.passes.xt_to_linalg.build.view import View

_F = arith_d.CmpFPredicate
_I = arith_d.CmpIPredicate

MATH = ("exp", "exp2", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf")
ROUNDING = {"floor": "floor", "ceil": "ceil", "round": "roundeven", "trunc": "trunc"}


def in_f32(fn: Callable[..., Any], dtype: Type, *xs: Value) -> Value:
    """`fn` on f16, bf16 and f8 values computed in f32 and rounded once; on wider types as it is."""
    if not is_float(dtype) or width(dtype) >= 32:
        return fn(*xs)
    f32 = ir.F32Type.get()
    out = fn(*(scalar.convert(x, dtype, f32) for x in xs))
    return scalar.convert(out, f32, dtype) if is_float(out.type) else out


def narrow(fn: Callable[..., Any], dtype: Type, *xs: Value) -> Value:
    """As `in_f32` for the 8-bit floats, which have no arithmetic of their own; f16 and bf16 stay."""
    return in_f32(fn, dtype, *xs) if width(dtype) <= 8 else fn(*xs)


@converts(*MATH)
def convert_math(b: Builder, op: Op) -> View:
    fn = getattr(math_d, op.name)
    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: in_f32(fn, op.dtype, s[0]))


@converts("floor", "ceil", "round", "trunc")
def convert_rounding(b: Builder, op: Op) -> View:
    if not is_float(op.dtype):
        return op.operands[0]
    fn = getattr(math_d, ROUNDING[op.name])
    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: in_f32(fn, op.dtype, s[0]))


def _abs(x: Value, t: Type) -> Value:
    if is_float(t):
        return narrow(math_d.absf, t, x)
    return x if is_unsigned(t) else math_d.absi(x)


def _neg(x: Value, t: Type) -> Value:
    return narrow(arith_d.negf, t, x) if is_float(t) else arith_d.subi(constant(t, 0), x)


def _sign(x: Value, t: Type) -> Value:
    zero, one = constant(t, 0), constant(t, 1)
    if is_float(t):
        signed = arith_d.select(arith_d.cmpf(_F.OLT, x, zero), constant(t, -1), x)
        signed = arith_d.select(arith_d.cmpf(_F.OGT, x, zero), one, signed)
        return arith_d.select(arith_d.cmpf(_F.OEQ, x, zero), zero, signed)
    positive = arith_d.select(arith_d.cmpi(_I.eq, x, zero), zero, one)
    if is_unsigned(t):
        return positive
    return arith_d.select(arith_d.cmpi(_I.slt, x, zero), constant(t, -1), positive)


def _reciprocal(x: Value, t: Type) -> Value:
    return in_f32(lambda v: arith_d.divf(constant(v.type, 1), v), t, x)


def _sigmoid(x: Value, t: Type) -> Value:
    def f(v: Value) -> Value:
        one = constant(v.type, 1)
        return arith_d.divf(one, arith_d.addf(one, math_d.exp(arith_d.negf(v))))

    return in_f32(f, t, x)


def _not(x: Value, t: Type) -> Value:
    return arith_d.xori(x, constant(t, 1 if is_bool(t) else -1))


UNARY = {"abs": _abs, "neg": _neg, "sign": _sign, "reciprocal": _reciprocal, "sigmoid": _sigmoid, "not": _not}


@converts(*UNARY)
def convert_unary(b: Builder, op: Op) -> View:
    t = computed(op.dtype)

    def body(s: list[Value]) -> Value:
        return scalar.convert(UNARY[op.name](scalar.convert(s[0], op.dtype, t), t), t, op.dtype)

    return b.pointwise(op.dims, op.dtype, op.operands, body)


@converts("is_nan", "is_inf", "is_finite")
def convert_classify(b: Builder, op: Op) -> View:
    """Tests on f32, f64, f16 as they are; f8 widened."""
    t = op.operands[0].dtype

    def test(x: Value) -> Value:
        if op.name == "is_nan":
            return arith_d.cmpf(_F.UNO, x, x)
        inf = constant(x.type, float("inf"))
        if op.name == "is_finite":
            return arith_d.cmpf(_F.OLT, math_d.absf(x), inf)
        up, down = op.attr("detect_positive", True), op.attr("detect_negative", True)
        if up and down:
            return arith_d.cmpf(_F.OEQ, math_d.absf(x), inf)
        if not up and not down:
            return constant(op.dtype, 0)
        return arith_d.cmpf(_F.OEQ, x, inf if up else constant(x.type, float("-inf")))

    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: narrow(test, t, s[0]))


FLOAT = {"add": arith_d.addf, "sub": arith_d.subf, "mul": arith_d.mulf, "div": arith_d.divf,
         "maximum": arith_d.maximumf, "minimum": arith_d.minimumf, "pow": math_d.powf, "atan2": math_d.atan2}
INTEGER = {"add": arith_d.addi, "sub": arith_d.subi, "mul": arith_d.muli, "and": arith_d.andi, "or": arith_d.ori,
           "xor": arith_d.xori}
_IN_F32 = {"pow", "atan2", "rem", "mod"}


def binary(name: str, x: Value, y: Value, t: Type) -> Value:
    """The scalar code of the binary op `name` on element type `t`."""
    if is_coded(t):
        wide = computed(t)
        return scalar.convert(binary(name, scalar.convert(x, t, wide), scalar.convert(y, t, wide), wide), wide, t)
    if name in ("rem", "mod"):
        fn = scalar.remainder if name == "rem" else scalar.modulo
        return in_f32(lambda a, b: fn(a, b, a.type), t, x, y) if is_float(t) else fn(x, y, t)
    if name == "next_after":
        return scalar.next_after(x, y, t)
    if is_float(t):
        return (in_f32 if name in _IN_F32 else narrow)(FLOAT[name], t, x, y)
    if name in ("maximum", "minimum"):
        kind = "max" if name == "maximum" else "min"
        return getattr(arith_d, kind + ("ui" if is_unsigned(t) else "si"))(x, y)
    if name == "div":
        return scalar.integer_divide(x, y, t)
    if name == "pow":
        return scalar.integer_power(x, y, t)
    if name in ("shift_left", "shift_right"):
        return scalar.shift(name == "shift_left", x, y, t)
    if is_bool(t) and name in ("add", "mul"):
        return (arith_d.ori if name == "add" else arith_d.andi)(x, y)
    return INTEGER[name](x, y)


@converts("add", "sub", "mul", "div", "rem", "mod", "pow", "atan2", "maximum", "minimum", "and", "or", "xor",
          "shift_left", "shift_right", "next_after")
def convert_binary(b: Builder, op: Op) -> View:
    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: binary(op.name, s[0], s[1], op.dtype))


@converts("compare")
def convert_compare(b: Builder, op: Op) -> View:
    dtype, direction = op.operands[0].dtype, op.attr("direction")
    t = computed(dtype)

    def body(s: list[Value]) -> Value:
        values = [scalar.convert(x, dtype, t) for x in s]
        if is_float(t):
            return narrow(lambda x, y: scalar.float_compare(direction, x, y), t, *values)
        return scalar.int_compare(direction, values[0], values[1], t)

    return b.pointwise(op.dims, op.dtype, op.operands, body)


@converts("select")
def convert_select(b: Builder, op: Op) -> View:
    return b.pointwise(op.dims, op.dtype, op.operands, lambda s: arith_d.select(s[0], s[1], s[2]))


@converts("convert")
def convert_convert(b: Builder, op: Op) -> View:
    src, dst, saturate = op.operands[0].dtype, op.dtype, bool(op.attr("saturate", False))
    return b.pointwise(op.dims, dst, op.operands, lambda s: scalar.convert(s[0], src, dst, saturate))


@converts("bitcast")
def convert_bitcast(b: Builder, op: Op) -> View:
    """Between element types of equal width; the codes of types of fewer bits than a byte are the same."""
    to = stored(op.dtype)

    def body(s: list[Value]) -> Value:
        return s[0] if s[0].type == to else arith_d.bitcast(to, s[0])

    return b.pointwise(op.dims, op.dtype, op.operands, body)

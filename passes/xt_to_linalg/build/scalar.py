"""Scalar code of elementwise ops whose plain machine form would trap, be undefined, or differ from the definition."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Type, Value, arith_d, ir, math_d
from xcc.passes.shared.lanes import Lanes
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.small_floats import decode, encode
from xcc.passes.xt_to_linalg.build.types import (
    computed,
    constant,
    is_bool,
    is_coded,
    is_float,
    is_unsigned,
    limits,
    stored,
    width,
)

_F = arith_d.CmpFPredicate
_I = arith_d.CmpIPredicate


def float_compare(direction: str, a: Value, b: Value) -> Value:
    """False with NaN, but for `ne`, which is true."""
    return arith_d.cmpf(_FLOAT[direction], a, b)


_FLOAT = {"eq": _F.OEQ, "ne": _F.UNE, "lt": _F.OLT, "le": _F.OLE, "gt": _F.OGT, "ge": _F.OGE}
_SIGNED = {"eq": _I.eq, "ne": _I.ne, "lt": _I.slt, "le": _I.sle, "gt": _I.sgt, "ge": _I.sge}
_UNSIGNED = {"eq": _I.eq, "ne": _I.ne, "lt": _I.ult, "le": _I.ule, "gt": _I.ugt, "ge": _I.uge}


def int_compare(direction: str, a: Value, b: Value, dtype: Type) -> Value:
    return arith_d.cmpi((_UNSIGNED if is_unsigned(dtype) else _SIGNED)[direction], a, b)


def _guarded(a: Value, b: Value, dtype: Type) -> tuple[Value, Value | None, Value | None]:
    """A divisor that cannot trap, with (b == 0, b == -1) where those can happen."""
    known = int_constant(b)
    if known not in (None, 0, -1):
        return b, None, None
    zero = arith_d.cmpi(_I.eq, b, constant(dtype, 0))
    minus = None if is_unsigned(dtype) else arith_d.cmpi(_I.eq, b, constant(dtype, -1))
    bad = zero if minus is None else arith_d.ori(zero, minus)
    return arith_d.select(bad, constant(dtype, 1), b), zero, minus


def integer_divide(a: Value, b: Value, dtype: Type) -> Value:
    """Truncating division; x / 0 = 0, INT_MIN / -1 = INT_MIN."""
    safe, zero, minus = _guarded(a, b, dtype)
    q = (arith_d.divui if is_unsigned(dtype) else arith_d.divsi)(a, safe)
    if minus is not None:
        q = arith_d.select(minus, arith_d.subi(constant(dtype, 0), a), q)
    return q if zero is None else arith_d.select(zero, constant(dtype, 0), q)


def remainder(a: Value, b: Value, dtype: Type) -> Value:
    """Remainder with the sign of the dividend; x rem 0 = 0 for integers."""
    if is_float(dtype):
        return arith_d.remf(a, b)
    safe, _, _ = _guarded(a, b, dtype)
    return (arith_d.remui if is_unsigned(dtype) else arith_d.remsi)(a, safe)


def modulo(a: Value, b: Value, dtype: Type) -> Value:
    """Remainder with the sign of the divisor (np.mod)."""
    r = remainder(a, b, dtype)
    if is_unsigned(dtype):
        return r
    zero = constant(dtype, 0)
    if is_float(dtype):
        differ = arith_d.cmpi(_I.ne, arith_d.cmpf(_F.OLT, r, zero), arith_d.cmpf(_F.OLT, b, zero))
        moved = arith_d.select(differ, arith_d.addf(r, b), r)
        return arith_d.select(arith_d.cmpf(_F.OEQ, r, zero), math_d.copysign(zero, b), moved)
    differ = arith_d.cmpi(_I.slt, arith_d.xori(r, b), zero)
    wrong = arith_d.andi(arith_d.cmpi(_I.ne, r, zero), differ)
    return arith_d.select(wrong, arith_d.addi(r, b), r)


def shift(left: bool, a: Value, b: Value, dtype: Type) -> Value:
    """Shifts; amounts not below the width shift everything out."""
    bits = width(dtype)
    small = arith_d.cmpi(_I.ult, b, constant(dtype, bits))
    if not left and not is_unsigned(dtype):
        return arith_d.shrsi(a, arith_d.select(small, b, constant(dtype, bits - 1)))
    amount = arith_d.select(small, b, constant(dtype, 0))
    out = (arith_d.shli if left else arith_d.shrui)(a, amount)
    return arith_d.select(small, out, constant(dtype, 0))


def integer_power(a: Value, b: Value, dtype: Type) -> Value:
    """a**b by squaring, wrapping; for a negative exponent the truncated quotient (1, -1 or 0)."""
    known = int_constant(b)
    zero, one = constant(dtype, 0), constant(dtype, 1)
    result, base = one, a
    bits = width(dtype) if known is None or known < 0 else known.bit_length()
    for i in range(bits):
        if known is None or known < 0:
            odd = arith_d.cmpi(_I.ne, arith_d.andi(b, constant(dtype, 1 << i)), zero)
            result = arith_d.select(odd, arith_d.muli(result, base), result)
        elif known >> i & 1:
            result = arith_d.muli(result, base)
        if i + 1 < bits:
            base = arith_d.muli(base, base)
    if is_unsigned(dtype) or (known is not None and known >= 0):
        return result
    odd = arith_d.cmpi(_I.ne, arith_d.andi(b, one), zero)
    minus = arith_d.select(odd, a, one)
    is_minus = arith_d.cmpi(_I.eq, a, constant(dtype, -1))
    is_one = arith_d.cmpi(_I.eq, a, one)
    negative = arith_d.select(is_minus, minus, arith_d.select(is_one, one, zero))
    return arith_d.select(arith_d.cmpi(_I.slt, b, zero), negative, result)


def next_after(a: Value, b: Value, dtype: Type) -> Value:
    """The next number after `a` towards `b` (C nextafter), on the bits."""
    bits = ir.IntegerType.get_signless(width(dtype))
    sign = 1 << (width(dtype) - 1)
    ia = arith_d.bitcast(bits, a)
    negative = arith_d.cmpi(_I.slt, ia, constant(bits, 0))
    up = arith_d.cmpf(_F.OLT, a, b)
    away = arith_d.cmpi(_I.ne, up, negative)
    step = arith_d.select(away, constant(bits, 1), constant(bits, -1))
    moved = arith_d.addi(ia, step)
    tiny = arith_d.select(up, constant(bits, 1), constant(bits, sign | 1))
    is_zero = arith_d.cmpf(_F.OEQ, a, constant(dtype, 0))
    out = arith_d.bitcast(a.type, arith_d.select(is_zero, tiny, moved))
    out = arith_d.select(arith_d.cmpf(_F.OEQ, a, b), b, out)
    return arith_d.select(arith_d.cmpf(_F.UNO, a, b), arith_d.addf(a, b), out)


def convert(x: Value, src: Type, dst: Type, saturate: bool = False) -> Value:
    """Any element type to any other. Floats to integers truncate and saturate, NaN gives 0."""
    if src == dst:
        return x
    if is_coded(src):
        kind = ir.IntegerType.get_signless(32) if not is_float(src) and width(dst) >= 32 else computed(src)
        return convert(_decode(x, src, kind), kind, dst, saturate)
    if is_coded(dst):
        return _encode(x, src, dst, saturate)
    if stored(src) == stored(dst) and is_float(src) == is_float(dst) and (src == dst or not saturate):
        return x
    if is_bool(dst):
        return arith_d.cmpf(_F.UNE, x, constant(src, 0)) if is_float(src) else arith_d.cmpi(_I.ne, x, constant(src, 0))
    if is_float(src):
        return _float_to_float(x, src, dst, saturate) if is_float(dst) else _float_to_int(x, src, dst)
    return _int_to_float(x, src, dst) if is_float(dst) else _int_to_int(x, src, dst, saturate)


def _decode(x: Value, src: Type, kind: Type) -> Value:
    """The value of a code, in the type `kind`: what `src` is computed in, or i32 (fewer moves between lane widths)."""
    if is_float(src):
        return decode(Lanes(x), str(src)).v
    wide = arith_d.extui(kind, x) if width(kind) > width(x.type) else x
    if is_unsigned(src):
        return arith_d.andi(wide, constant(kind, (1 << width(src)) - 1))
    # no integers of 2 or 4 bits: LLVM has no code for vectors of them on AMD GPUs
    upper = constant(kind, width(kind) - width(src))
    return arith_d.shrsi(arith_d.shli(wide, upper), upper)


def _encode(x: Any, src: Any, dst: Any, saturate: bool) -> Any:
    """The code in `dst` of a value of the type `src`."""
    if is_float(dst):
        x, f32 = convert(x, src, ir.F32Type.get()), ir.F32Type.get()
        if saturate:
            low, high = limits(dst, finite=True)
            x = arith_d.maximumf(arith_d.minimumf(x, constant(f32, high)), constant(f32, low))
        return encode(Lanes(x), str(dst)).v
    if is_float(src):
        code = _float_to_int(x, src, dst)
    else:
        code = convert(_clamp_int(x, src, dst) if saturate else x, src, computed(dst))
    return arith_d.andi(code, constant(computed(dst), (1 << width(dst)) - 1))


def _float_to_float(x: Value, src: Type, dst: Type, saturate: bool) -> Value:
    f32 = ir.F32Type.get()
    if saturate and width(dst) == 8:
        if width(src) < 32:
            x, src = arith_d.extf(f32, x), f32
        low, high = limits(dst, finite=True)
        x = arith_d.maximumf(arith_d.minimumf(x, constant(src, high)), constant(src, low))
    if width(src) < width(dst):
        return arith_d.extf(dst, x)
    if width(src) > width(dst):
        if width(src) == 64 and width(dst) < 32:  # by way of f32: no machine has the direct conversion
            x = arith_d.truncf(f32, x)
        return arith_d.truncf(dst, x)
    return arith_d.truncf(dst, arith_d.extf(f32, x))


def _float_to_int(x: Value, src: Type, dst: Type) -> Value:
    if width(src) < 32:
        x, src = arith_d.extf(ir.F32Type.get(), x), ir.F32Type.get()
    low, high = (int(v) for v in limits(dst))
    mantissa = 53 if width(src) == 64 else 24
    below = high if high < (1 << mantissa) else (1 << high.bit_length()) - (1 << (high.bit_length() - mantissa))
    inside = arith_d.maximumf(arith_d.minimumf(x, constant(src, below)), constant(src, low))
    number = arith_d.select(arith_d.cmpf(_F.UNO, x, x), constant(src, 0), inside)
    out = (arith_d.fptoui if is_unsigned(dst) else arith_d.fptosi)(stored(dst), number)
    if below == high:
        return out
    return arith_d.select(arith_d.cmpf(_F.OGT, x, constant(src, below)), constant(dst, high), out)


def _int_to_float(x: Value, src: Type, dst: Type) -> Value:
    to = dst if width(dst) >= 32 else ir.F32Type.get()
    x = (arith_d.uitofp if is_unsigned(src) else arith_d.sitofp)(to, x)
    return x if to == dst else arith_d.truncf(dst, x)


def _int_to_int(x: Value, src: Type, dst: Type, saturate: bool) -> Value:
    if saturate:
        x = _clamp_int(x, src, dst)
    to = stored(dst)
    if width(src) < width(dst):
        return (arith_d.extui if is_unsigned(src) else arith_d.extsi)(to, x)
    return arith_d.trunci(to, x) if width(src) > width(dst) else x


def _clamp_int(x: Any, src: Any, dst: Any) -> Any:
    """`x` moved into the range of `dst`, still of type `src`."""
    (src_low, src_high), (low, high) = limits(src), limits(dst)
    if low > src_low:
        x = arith_d.maxsi(x, constant(src, low))
    if high < src_high:
        x = (arith_d.minui if is_unsigned(src) else arith_d.minsi)(x, constant(src, high))
    return x

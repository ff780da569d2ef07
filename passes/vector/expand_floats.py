"""expand-floats: arithmetic and casts of bf16 and the f8 types in terms of f32 and integers.

    %y = arith.addf %a, %b : vector<8xbf16>     becomes extf, addf in f32, and a rounding shift of the bits
    %y = arith.maximumf %a, %b                  becomes %a is NaN ? %a : %a > %b ? %a : %b

Needed where the target has no such instructions: LLVM would call library functions that no process has. On x86 it would
make six instructions of a maximum, which also tell the zeros apart: of these three, one waits for %b, which in a
reduction is the maximum so far.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Module, Operation, Type, Value, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.lanes import Lanes, element, with_element
from xcc.passes.shared.small_floats import FORMATS, decode, decode_half, encode
from xcc.passes.shared.values import op
from xcc.passes.walk import ops_where

_EXTREMES = {"arith.maximumf": "ogt", "arith.minimumf": "olt"}
_MOVES = ("arith.constant", "arith.select", "arith.bitcast")


HALVES = ("f8E4M3FN", "f8E5M2")
SMALL = (ir.BF16Type, ir.Float8E4M3FNType, ir.Float8E5M2Type)


@register_pass
class ExpandFloats(Pass):
    """Lowers bf16, f8E4M3FN and f8E5M2 arithmetic to f32, and narrowing of f64 so that it rounds once.

    halves: f8 becomes f16 first, by two at a time: for chips with arithmetic on pairs of f16.
    bf16: whether to lower bf16 too; GPUs have instructions for it. CPUs that multiply bf16 round f32 to it as well
    (values below the least normal one to 0, as in their products).
    """

    bf16: bool = True
    halves: bool = False

    def run(self, module: Module, ctx: PassContext) -> None:
        kinds = SMALL if self.bf16 else SMALL[1:]
        rounds = ctx.chip is not None and bool(ctx.chip.rounds_to_bf16)

        for o in ops_where(module, lambda o: o.name.startswith(("arith.", "math.")) and o.name not in _MOVES
                           and _concerns(o, kinds), outer_first=True):
            with ir.InsertionPoint(o), o.location:
                _expand(o, rounds, self.halves)
        if ctx.chip is not None and not ctx.chip.nan_extremes:
            for o in ops_where(module, _is_wide_extreme):
                _compare(o)


def _is_wide_extreme(o: Operation) -> bool:
    """A maximum or minimum of vectors that LLVM does not know to be free of NaN."""
    return o.name in _EXTREMES and isinstance(o.results[0].type, ir.VectorType) \
        and isinstance(element(o.results[0].type), (ir.F32Type, ir.F64Type)) \
        and all(maker(v, "arith.constant") is None for v in o.operands)


def _compare(o: Operation) -> None:
    with ir.InsertionPoint(o), o.location:
        a, b = map(Lanes, o.operands)
        better = a.compare(_EXTREMES[o.name], b).select(a, b)
        o.results[0].replace_all_uses_with(a.compare("uno", a).select(a, better).v)
    o.erase()


def _is_small(t: Type) -> bool:
    return isinstance(element(t), SMALL)


def _concerns(o: Operation, kinds: tuple[Any, ...]) -> bool:
    if any(isinstance(element(v.type), kinds) for v in (*o.operands, *o.results)):
        return True
    return bool(o.name == "arith.truncf" and isinstance(element(o.results[0].type), ir.F16Type)
                and isinstance(element(o.operands[0].type), ir.F64Type))


def _expand(o: Operation, rounds: bool, halves: bool) -> None:
    result = o.results[0]
    to = element(result.type)
    halves &= o.name == "arith.extf" and not isinstance(to, ir.BF16Type)
    operands = [_widened(v, halves) if _is_small(v.type) else v for v in o.operands]
    if o.name == "arith.extf":
        y = Lanes(operands[0])
        y = y if element(y.type) == to else _cast_to(y, to)
    elif o.name == "arith.truncf":
        y = narrowed(Lanes(operands[0]), to, rounds)
    else:
        wide = ir.F32Type.get() if _is_small(result.type) else to
        attributes = {name: o.attributes[name] for name in o.attributes}
        y = Lanes(op(o.name, [with_element(result.type, wide)], operands, **attributes))
        if _is_small(result.type):
            y = narrowed(y, to, rounds)
    result.replace_all_uses_with(y.v)
    o.erase()


def _cast_to(y: Lanes, elem: Type) -> Lanes:
    return y.cast("extf" if elem.width > element(y.type).width else "truncf", elem)


def _widened(value: Value, halves: bool) -> Value:
    """A bf16 or f8 value as f32, or f8 as f16, exact."""
    elem = element(value.type)
    bits = Lanes(op("arith.bitcast", [with_element(value.type, ir.IntegerType.get_signless(elem.width))], [value]))
    if isinstance(elem, ir.BF16Type):
        return (bits.cast("extui", ir.IntegerType.get_signless(32)) << 16).bits().v
    return (decode_half if halves and str(elem) in HALVES else decode)(bits, str(elem)).v


def narrowed(x: Lanes, elem: Type, rounds: bool = False) -> Lanes:
    """`x` (f16, f32 or f64) rounded to nearest even in `elem`; `rounds`: f32 to bf16 is an instruction."""
    f32 = ir.F32Type.get()
    have = element(x.type)
    if isinstance(have, ir.F64Type):
        x = _round_to_odd(x)
    elif have != f32:
        x = x.cast("extf", f32)
    if isinstance(elem, ir.BF16Type) and rounds:
        return x.cast("truncf", elem)
    if isinstance(elem, ir.BF16Type):
        out = _to_bf16(x).cast("trunci", ir.IntegerType.get_signless(16))
    elif str(elem) in FORMATS:
        out = encode(x, str(elem))
    else:
        return x.cast("truncf", elem)
    return Lanes(op("arith.bitcast", [with_element(out.type, elem)], [out.v]))


def _round_to_odd(x: Lanes) -> Lanes:
    """f64 to f32 so that a second rounding to fewer bits gives what one rounding would."""
    y = x.cast("truncf", ir.F32Type.get())
    bits = y.bits()
    error = x - y.cast("extf", ir.F64Type.get())
    even = (bits & 1).compare("eq", 0) & error.compare("one", 0.0) & y.abs().compare("olt", float("inf"))
    outward = error.compare("ogt", 0.0) ^ x.compare("olt", 0.0)
    moved = bits + outward.select(bits.const(1), -1)
    return even.select(moved, bits).bits()


def _to_bf16(x: Lanes) -> Lanes:
    bits = x.bits()
    rounded = bits + 0x7FFF + (bits.shr(16) & 1)
    quiet = bits | 0x400000
    return x.compare("uno", x).select(quiet, rounded).shr(16)

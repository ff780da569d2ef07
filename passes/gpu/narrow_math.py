"""Math whose results end in 16-bit types, in shorter forms.

    %e = math.exp %x : vector<4x256xf32>             %t = arith.mulf %x, log2(e)
    %s = vector.multi_reduction <add>, %e       ->   %e = math.exp2 %t fastmath<afn>
    %y = arith.divf %e, %s ... arith.truncf to f16

It runs on tile programs, where a row's sum is one operation, and again on what `expand-math` leaves.

exp(x) becomes 2^t, where t is x * log2(e) rounded: that loses |t| * 2^-24 of the result, at most 2^-17 where bf16 has
one and 2^-19 where f16 has, and the instruction's 2^-22 near 0, where exp(x) - 1 cancels. 1 / x is the chip's
reciprocal (relative error below 2^-22): a sigmoid of f16 is 5 instructions. Both errors are relative, and sums of a
row pass them on as they are. Where all uses end in f16, what is too small for f32's normal numbers may be 0 (``afn``
alone; ``contract,afn`` keeps it).

2^(a * b - c) is of a multiply-add, which is rounded once.

erf is sign(x) * (1 - 2^(|x| * P(|x|))), with P fitted so that the absolute error is below 5e-7 everywhere. Where it is
part of a gelu, x / 2 * (1 + erf(c x)) = max(x, 0) - |x| * erfc(|c x|) / 2, and half of erfc is 2^(|c x| * P(|c x|) - 1)
with a relative error of 8e-5 up to |c x| = 3: the tail is as good as the rest. That is nine instructions an element.

1 + tanh(x), as in the other gelu, is 2 / (1 + exp(-2 x)), which does not cancel. Any other tanh is
(1 - e) / (1 + e) with e = exp(-2 |x|), and x - x^3 / 3 where 1 - e would cancel: relative error below 2^-19.
"""

from __future__ import annotations

import math
from typing import Any

from xcc._mlir import Module, Operation, Type, Value, arith_d, ir, math_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.hardware_math import replace_in_f32
from xcc.passes.shared.lanes import element
from xcc.passes.shared.patterns import only_user, product, splat_of
from xcc.passes.shared.values import op as op_of
from xcc.passes.shared.values import splat_constant
from xcc.passes.walk import ops_where

GELU_END = 1e4   # far beyond where erfc is 0, so that infinity times 0 does not happen
SMALL = 2.0 ** -5    # up to there tanh is x - x^3 / 3
BOUNDS = 3       # operands of a loop ahead of what it carries
ADDED = 2        # the operand of a contraction that its products are added to
MOST = 64        # values that are followed to the types that use a result

ARITHMETIC = ("arith.addf", "arith.mulf", "arith.subf", "arith.negf", "arith.select", "arith.truncf", "arith.maximumf",
              "arith.minimumf", "math.fma", "vector.shape_cast", "vector.shuffle", "vector.broadcast",
              "vector.transpose")
# what a relative error passes; an absolute one may grow in a division or a sum of many
RELATIVE = (*ARITHMETIC, "arith.divf", "vector.multi_reduction", "vector.extract", "vector.from_elements")
KINDS = ("arith.divf", "math.erf", "math.exp", "math.exp2", "math.tanh")
SUMS = ("#vector.kind<add>", "#vector.kind<maximumf>", "#vector.kind<minimumf>")


@register_pass
class NarrowMath(Pass):
    """Writes exp, erf, tanh, gelu and 1 / x of f32 shorter where all that uses them ends in a 16-bit type."""

    def run(self, module: Module, ctx: PassContext) -> None:
        if not ops_where(module, lambda op: op.name in KINDS):
            return
        for op, _ in _narrow(module, "math.erf", ARITHMETIC):
            if not _gelu(op):
                replace_in_f32(op, _erf)
        for op, _ in _narrow(module, "math.tanh", RELATIVE):
            if not (element(op.results[0].type).width == 32 and _one_and_tanh(op)):
                replace_in_f32(op, _tanh)
        for op, ends in _narrow(module, "arith.divf", RELATIVE):
            if splat_of(op.operands[0]) == 1.0 and element(op.results[0].type).width == 32:
                flags = "afn" if _may_flush(ends) else "contract,afn"
                op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flags}>")
        for op, ends in _narrow(module, "math.exp", RELATIVE):
            replace_in_f32(op, _flushed_exp if _may_flush(ends) else _exp)
        for op, ends in _narrow(module, "math.exp2", RELATIVE):
            if element(op.results[0].type).width == 32:
                _contract(op.operands[0])
                if _may_flush(ends):
                    op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<afn>")


def _narrow(module: Module, name: str, steps: tuple[str, ...]) -> list[tuple[Operation, list[Type]]]:
    """The operations called `name` whose results end in types below 32 bits, each with those types."""
    found = ops_where(module, lambda op: op.name == name and element(op.results[0].type).width <= 32)
    ends = [(op, _ends(op.results[0], steps)) for op in found]
    return [(op, types) for op, types in ends if types]


def _may_flush(ends: list[Type]) -> bool:
    return all(isinstance(t, ir.F16Type) for t in ends)


def _ends(value: Value, steps: tuple[str, ...]) -> list[Type]:
    """The types below 32 bits in which the uses of `value` end, through operations of `steps` and loops; none where
    one use is of another kind, or where it takes more than MOST values to tell."""
    todo, seen, ends = [value], set(), []
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if element(at.type).width < 32:
            ends.append(element(at.type))
            continue
        then = [_passed_on(use.owner.operation, use.operand_number, steps) for use in at.uses]
        if not all(then) or len(seen) > MOST:       # a value without uses is a loop's that nothing reads
            return []
        todo += [v for values in then for v in values]
    return ends


def _passed_on(user: Operation, number: int, steps: tuple[str, ...]) -> list[Value]:
    """The values that `user` makes of its operand `number`; none where it is used for something else."""
    if user.name == "scf.yield":
        loop = user.parent
        if loop.name == "scf.for":
            return [loop.results[number], loop.regions[0].blocks[0].arguments[number + 1]]
        return [loop.results[number]] if loop.name == "scf.if" else []
    if user.name == "scf.for" and number >= BOUNDS:
        return [user.results[number - BOUNDS], user.regions[0].blocks[0].arguments[number - BOUNDS + 1]]
    if user.name == "vector.contract":
        return list(user.results) if number == ADDED else []
    if user.name == "vector.multi_reduction" and str(user.attributes["kind"]) not in SUMS:
        return []
    return list(user.results) if user.name in steps else []


def _exp(x: Value, flags: Any = None) -> Value:
    return math_d.exp2(arith_d.mulf(x, splat_constant(x.type, math.log2(math.e))), fastmath=flags)


def _flushed_exp(x: Value) -> Value:
    return _exp(x, arith_d.FastMathFlags.afn)


def _contract(x: Value) -> None:
    """Makes a multiply-add of `x` where it is a * b - c, which is rounded once."""
    sub = None if isinstance(x.owner, ir.Block) else x.owner.operation
    if sub is None or sub.name != "arith.subf" or isinstance(sub.operands[0].owner, ir.Block):
        return
    times, less = sub.operands[0].owner.operation, sub.operands[1]
    if times.name != "arith.mulf" or len(list(times.results[0].uses)) > 1:
        return
    with sub.location, ir.InsertionPoint(sub):
        row = None if isinstance(less.owner, ir.Block) else less.owner.operation
        spread = row.operands[0] if row is not None and row.name == "vector.broadcast" else None
        minus = arith_d.negf(less) if spread is None else \
            op_of("vector.broadcast", [x.type], [arith_d.negf(spread)])
        x.replace_all_uses_with(math_d.fma(*times.operands, minus))
    for dead in (sub, times):
        dead.erase()


def _tanh(x: Value) -> Value:
    one, far = splat_constant(x.type, 1.0), math_d.absf(x)
    e = _flushed_exp(arith_d.mulf(far, splat_constant(x.type, -2.0)))
    whole = arith_d.mulf(arith_d.subf(one, e), _reciprocal(arith_d.addf(one, e)))
    cube = arith_d.mulf(arith_d.mulf(x, x), arith_d.mulf(x, splat_constant(x.type, -1.0 / 3.0)))
    is_small = arith_d.cmpf(arith_d.CmpFPredicate.OLT, far, splat_constant(x.type, SMALL))
    return arith_d.select(is_small, arith_d.addf(x, cube), math_d.copysign(whole, x))


def _one_and_tanh(op: Operation) -> bool:
    """Writes the 1 + tanh(x) around the tanh `op` as one; False where there is none."""
    sum_ = _plus_one(op)
    if sum_ is None:
        return False
    x = op.operands[0]
    with sum_.location, ir.InsertionPoint(sum_):
        e = _flushed_exp(arith_d.mulf(x, splat_constant(x.type, -2.0)))
        half = _reciprocal(arith_d.addf(e, splat_constant(x.type, 1.0)))
        sum_.results[0].replace_all_uses_with(arith_d.mulf(half, splat_constant(x.type, 2.0)))
    for dead in (sum_, op):
        dead.erase()
    return True


def _plus_one(op: Operation) -> Operation | None:
    """The sum of 1 and the operation's result that alone uses it, if there is one."""
    found = only_user(op, "arith.addf")
    return found if found is not None and {1.0} == {splat_of(v) for v in found.operands if v != op.results[0]} else None


def _reciprocal(x: Value) -> Value:
    return arith_d.divf(splat_constant(x.type, 1.0), x, fastmath=arith_d.FastMathFlags.afn)


def _erf(x: Value) -> Value:
    t = arith_d.minimumf(math_d.absf(x), splat_constant(x.type, 4.0))
    return math_d.copysign(arith_d.subf(splat_constant(x.type, 1.0), _power(_ERF, t)), x)


def _gelu(op: Operation) -> bool:
    """Writes the x / 2 * (1 + erf(c x)) around the erf `op` as one; False where there is none."""
    scaled, one = product(op.operands[0]), _plus_one(op)
    whole = only_user(one, "arith.mulf") if one is not None else None
    if scaled is None or one is None or whole is None:
        return False
    half = next((h for h in map(product, whole.operands) if h is not None and h[1] == 0.5), None)
    x, c = scaled
    if half is None or half[0] != x or c <= 0:
        return False
    degree = len(_ERFC)
    scaled_terms = tuple(p * c ** (degree - n) for n, p in enumerate(_ERFC))     # P(c t) c t as a polynomial in t
    with whole.location, ir.InsertionPoint(whole):
        t = arith_d.minimumf(math_d.absf(x), splat_constant(x.type, GELU_END))
        tail = _power(scaled_terms, t, -1.0)
        positive = arith_d.maximumf(x, splat_constant(x.type, 0.0))
        whole.results[0].replace_all_uses_with(math_d.fma(arith_d.negf(t), tail, positive))
    for dead in (whole, one, op):
        dead.erase()
    return True


def _power(polynomial: tuple[float, ...], t: Value, last: float = 0.0) -> Value:
    """2^(t * P(t) + last) by the instruction."""
    p = splat_constant(t.type, polynomial[0])
    for c in polynomial[1:]:
        p = math_d.fma(p, t, splat_constant(t.type, c))
    power = math_d.fma(p, t, splat_constant(t.type, last)) if last else arith_d.mulf(p, t)
    return math_d.exp2(power, fastmath=arith_d.FastMathFlags.afn)


_ERFC = (-1.94258778e-3, 2.42517497e-2, -1.38872266e-1, -9.2557627e-1, -1.62630975)
_ERF = (2.27064593e-4, -4.04117256e-3, 3.14845331e-2, -1.50091901e-1, -9.18058634e-1, -1.62793386)

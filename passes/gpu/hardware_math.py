"""Math that a GPU has instructions for, as calls of LLVM's intrinsics.

    %e = math.exp %x : vector<8xf32>   becomes   %t = x * log2(e) and its rounding error, llvm.exp2(%t), ...

Calls, because the upstream conversions turn the math and LLVM dialects' own ops into calls of vendor libraries.

exp(x) = 2^t * (1 + r * ln 2), where t is x * log2(e) rounded and r what the rounding lost, so that the error stays
that of the instruction (2 units in the last place) for all x. 16-bit types are computed in f32.

math.exp2 and 1 / x with ``fastmath<afn>`` are the chip's instruction alone: numbers below the normal ones may be 0.
A quotient in f32 by a converted integer (a mean) is made of the reciprocal and multiply-adds, which round it like a
division: ptxas makes a branch of a division, over which it moves nothing.
math.rsqrt of up to 32 bits is the chip's instruction where it has one (`Chip.intrinsics`, relative error below
2^-22.9), elsewhere a root and a division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xcc._mlir import Module, Operation, Value, arith_d, ir, maker, math_d, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.lanes import element, with_element
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.values import splat_constant
from xcc.passes.walk import ops_where

LOG2E = float(np.float32(math.log2(math.e)))
LOG2E_LOW = math.log2(math.e) - LOG2E
REMAINDER_STEPS = {32: 3, 64: 2}     # of 23 and 52 bits
RANGE = 192.0    # beyond it the f32 result is 0 or infinite


@register_pass
class HardwareMath(Pass):
    """Writes exp, roots, roundings, sign operations and remainders with LLVM's intrinsics, which GPUs have."""

    def run(self, module: Module, ctx: PassContext) -> None:
        own = ctx.chip.intrinsics
        for op in _found(module, lambda op: op.name in _BUILD or "reciprocal" in own and (
                _is_reciprocal(op) or _is_mean(op))):
            replace_in_f32(op, _of_chip(op, own) or _BUILD[op.name])


def _of_chip(op: Operation, own: Mapping[str, str]) -> Callable[..., Any] | None:
    """The chip's own instruction for the operation, if it has one that is good enough."""
    if "exp2" in own and op.name == "math.exp2" and _approximate(op):
        return _instruction(own["exp2"])
    if "reciprocal" in own and _is_reciprocal(op):
        reciprocal = _instruction(own["reciprocal"])
        return lambda _, x: reciprocal(x)
    if "reciprocal" in own and _is_mean(op):
        return partial(_mean, _instruction(own["reciprocal"]))
    if "rsqrt" in own and op.name == "math.rsqrt" and element(op.results[0].type).width <= 32:
        return _instruction(own["rsqrt"])
    return None


def _found(module: Module, wanted: Callable[[Any], bool]) -> list[Operation]:
    """The operations of types up to 32 bits, or any width where they have instructions for that, that are `wanted`."""
    return ops_where(module, lambda op: wanted(op) and (
        op.name in _ANY_WIDTH or element(op.results[0].type).width <= 32))


def replace_in_f32(op: Operation, build: Callable[..., Any]) -> None:
    """Puts `build(*operands)` in the place of the operation; what is below 32 bits is extended to f32 for it."""
    t = op.results[0].type
    with op.location, ir.InsertionPoint(op):
        if element(t).width >= 32:
            value = build(*op.operands)
        else:
            wide = with_element(t, ir.F32Type.get())
            value = arith_d.truncf(t, build(*[arith_d.extf(wide, x) for x in op.operands]))
        op.results[0].replace_all_uses_with(value)
    op.erase()


def _intrinsic(name: str) -> Any:
    """Builds calls of an intrinsic; ``*`` at the end of its name is for the type of its operands."""
    def build(*operands: Value) -> Value:
        t = operands[0].type
        kind = str(element(t))
        suffix = f"v{ir.VectorType(t).shape[0]}{kind}" if isinstance(t, ir.VectorType) else kind
        none = ir.DenseI32ArrayAttr.get([])
        whole = f"llvm.{name.replace('*', suffix)}"
        attributes = {"intrin": ir.StringAttr.get(whole), "op_bundle_sizes": none,
                      "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0])}
        return ir.Operation.create("llvm.call_intrinsic", results=[t], operands=list(operands),
                                   attributes=attributes).results[0]
    return build


def _approximate(op: Operation) -> bool:
    return "fastmath" in op.attributes and str(op.attributes["fastmath"]) == "#arith.fastmath<afn>"


def _is_reciprocal(op: Operation) -> bool:
    return op.name == "arith.divf" and _approximate(op) and splat_of(op.operands[0]) == 1.0


def _is_mean(op: Operation) -> bool:
    """Whether it is a quotient of f32 by an integer."""
    if op.name != "arith.divf" or not isinstance(element(op.results[0].type), ir.F32Type):
        return False
    by = maker(op.operands[1])
    return by is not None and by.name in ("arith.sitofp", "arith.uitofp")


def _mean(reciprocal: Callable[[Value], Value], x: Value, n: Value) -> Value:
    """x / n: a quotient by the reciprocal, corrected by what is left (Markstein, "Computation of elementary functions
    on the IBM RISC System/6000 processor", 1990). n is an integer, so that no step but the first can overflow."""
    one, minus = splat_constant(x.type, 1.0), arith_d.negf(n)
    rough = reciprocal(n)
    near = math_d.fma(rough, math_d.fma(minus, rough, one), rough)
    first, quotient = arith_d.mulf(x, rough), arith_d.mulf(x, near)
    exact = math_d.fma(math_d.fma(minus, quotient, x), near, quotient)
    finite = arith_d.cmpf(arith_d.CmpFPredicate.OLT, _abs(first), splat_constant(x.type, math.inf))
    return arith_d.select(finite, exact, first)         # infinite ones, and those by 0


def _instruction(name: str) -> Any:
    """An intrinsic that has scalars alone."""
    scalar = _intrinsic(name)

    def build(x: Value) -> Value:
        if not isinstance(x.type, ir.VectorType):
            return scalar(x)
        parts = [vector_d.extract(x, [], [n]) for n in range(ir.VectorType(x.type).shape[0])]
        return vector_d.from_elements(x.type, [scalar(v) for v in parts])
    return build


_exp2, _sqrt, _abs, _trunc, _copysign = map(_intrinsic, ("exp2.*", "sqrt.*", "fabs.*", "trunc.*", "copysign.*"))


def _exp(x: Value) -> Value:
    t = x.type
    near = arith_d.minimumf(arith_d.maximumf(x, splat_constant(t, -RANGE)), splat_constant(t, RANGE))
    scale = splat_constant(t, LOG2E)
    rounded = arith_d.mulf(near, scale)
    lost = math_d.fma(near, scale, arith_d.negf(rounded))
    lost = math_d.fma(near, splat_constant(t, LOG2E_LOW), lost)
    return arith_d.mulf(_exp2(rounded), math_d.fma(lost, splat_constant(t, math.log(2)), splat_constant(t, 1.0)))


def _rsqrt(x: Value) -> Value:
    return arith_d.divf(splat_constant(x.type, 1.0), _sqrt(x))


def _remainder(x: Value, y: Value) -> Value:
    """C's fmod, for quotients up to 2^64.

    A quotient is rounded to the bits of its type: what that leaves is exact, but as much shorter only, and is divided
    again. The last quotient may be one off after rounding, which one step repairs.
    """
    y, r = _abs(y), x
    for _ in range(REMAINDER_STEPS[element(x.type).width]):
        r = math_d.fma(arith_d.negf(_trunc(arith_d.divf(r, y))), y, r)
    less = arith_d.subf(_abs(r), y)
    zero, one = splat_constant(x.type, 0.0), splat_constant(x.type, 1.0)
    r = arith_d.select(arith_d.cmpf(arith_d.CmpFPredicate.OGE, less, zero), _copysign(less, x), r)
    crossed = arith_d.cmpf(arith_d.CmpFPredicate.OLT, arith_d.mulf(_copysign(one, x), r), zero)
    r = arith_d.select(crossed, _copysign(arith_d.subf(y, _abs(r)), x), r)
    is_less = arith_d.cmpf(arith_d.CmpFPredicate.OLT, _abs(x), y)       # 0 times an infinite y would be NaN
    return arith_d.select(is_less, x, _copysign(r, x))


_BUILD = {"math.exp": _exp, "math.exp2": _exp2, "math.rsqrt": _rsqrt, "math.sqrt": _sqrt,
          "math.absf": _abs, "math.ceil": _intrinsic("ceil.*"), "math.copysign": _copysign,
          "math.floor": _intrinsic("floor.*"), "math.round": _intrinsic("round.*"),
          "math.roundeven": _intrinsic("roundeven.*"), "math.trunc": _trunc, "arith.remf": _remainder,
          "arith.maxnumf": _intrinsic("maxnum.*"), "arith.minnumf": _intrinsic("minnum.*")}
_ANY_WIDTH = tuple(name for name in _BUILD if name not in ("math.exp", "math.exp2"))

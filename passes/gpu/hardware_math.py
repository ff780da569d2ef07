"""Math that a GPU has instructions for, as calls of LLVM's intrinsics.

    %e = math.exp %x : vector<8xf32>   becomes   %t = x * log2(e) and its rounding error, llvm.exp2(%t), ...

Calls, because the upstream conversions turn the math and LLVM dialects' own ops into calls of vendor libraries.

exp(x) = 2^t * (1 + r * ln 2), where t is x * log2(e) rounded and r what the rounding lost, so that the error stays
that of the instruction (2 units in the last place) for all x. 16-bit types are computed in f32.

Where all uses end in a 16-bit type the rounding is left out: it is |t| * 2^-24 of the result, at most 2^-17 where bf16
has one and 2^-19 where f16 has, and the instruction's 2^-22 near 0, where exp(x) - 1 cancels. What is too small for
f32's normal numbers may be 0 where all uses end in f16. 1 / x that ends in a 16-bit type is the chip's reciprocal
(relative error below 2^-22): a sigmoid of f16 is 5 instructions.

erf whose uses all end in a 16-bit type is sign(x) * (1 - 2^(|x| * P(|x|))), with P fitted so that the absolute error is
below 5e-7 everywhere. Where it is part of a gelu, x / 2 * (1 + erf(c x)) = max(x, 0) - |x| * erfc(|c x|) / 2, and half
of erfc is 2^(|c x| * P(|c x|) - 1) with a relative error of 8e-5 up to |c x| = 3: the tail is as good as the rest. That
is nine instructions an element.

math.exp2 with ``fastmath<afn>`` is the chip's instruction alone: results below the smallest normal number may be 0.
math.rsqrt of up to 32 bits is NVIDIA's instruction (relative error below 2^-22.9), elsewhere a root and a division.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xcc._mlir import arith_d, ir, math_d, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.vector.patterns import only_user, product, splat_of
from xcc.passes.walk import ops_where

LOG2E = float(np.float32(math.log2(math.e)))
LOG2E_LOW = math.log2(math.e) - LOG2E
GELU_END = 1e4   # far beyond where erfc is 0, so that infinity times 0 does not happen
DEPTH = 8        # steps of arithmetic that are followed to the types that use a result
RANGE = 192.0    # beyond it the f32 result is 0 or infinite

_ARITHMETIC = ("arith.addf", "arith.mulf", "arith.subf", "arith.negf", "arith.select", "arith.truncf", "arith.maximumf",
               "arith.minimumf", "math.fma", "vector.shape_cast", "vector.shuffle")
_RELATIVE = (*_ARITHMETIC, "arith.divf")     # what a relative error passes; an absolute one may grow in a division


@register_pass
@dataclass(frozen=True)
class HardwareMath(Pass):
    """Writes exp, roots, roundings, sign operations and remainders with LLVM's intrinsics, which GPUs have."""

    name: ClassVar[str] = "hardware-math"

    def run(self, module: Any, ctx: PassContext) -> None:
        for op in _found(module, lambda op: op.name == "math.erf" and bool(_narrow_ends(op.results[0], DEPTH))):
            if not _gelu(op):
                _replace(op, _erf)
        for op in _found(module, _is_reciprocal):
            op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<afn>")
        for op in _found(module, lambda op: op.name in _BUILD):
            build = _BUILD[op.name]
            nvidia = ctx.chip.triple.startswith("nvptx")
            power = _instruction("nvvm.ex2.approx.ftz" if nvidia else "amdgcn.exp2")
            ends = _narrow_ends(op.results[0], DEPTH, _RELATIVE) if op.name == "math.exp" else None
            if ends:
                build = _short_exp(power if all(isinstance(t, ir.F16Type) for t in ends) else _exp2)
            elif op.name == "math.exp2" and _approximate(op):
                build = power
            elif op.name == "math.rsqrt" and nvidia and _element(op.results[0].type).width <= 32:
                build = _instruction("nvvm.rsqrt.approx.f", of_types=False)
            _replace(op, build)


def _found(module: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """The operations of types up to 32 bits, or any width where they have instructions for that, that are `wanted`."""
    return ops_where(module, lambda op: wanted(op) and (
        op.name in _ANY_WIDTH or _element(op.results[0].type).width <= 32))


def _replace(op: Any, build: Callable[..., Any]) -> None:
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(_in_f32(list(op.operands), build))
    op.erase()


def _element(t: Any) -> Any:
    return ir.VectorType(t).element_type if isinstance(t, ir.VectorType) else t


def _in_f32(operands: list[Any], build: Any) -> Any:
    t = operands[0].type
    if _element(t).width >= 32:
        return build(*operands)
    f32 = ir.F32Type.get()
    wide = ir.VectorType.get(ir.VectorType(t).shape, f32) if isinstance(t, ir.VectorType) else f32
    return arith_d.truncf(t, build(*[arith_d.extf(wide, x) for x in operands]))


def _constant(t: Any, value: float) -> Any:
    attr = ir.FloatAttr.get(_element(t), value)
    return arith_d.constant(t, ir.DenseElementsAttr.get_splat(t, attr) if isinstance(t, ir.VectorType) else attr)


def _intrinsic(name: str, of_types: bool = True) -> Any:
    """Builds calls of an intrinsic, one of any type or of one."""
    def build(*operands: Any) -> Any:
        t = operands[0].type
        kind = str(_element(t))
        suffix = f"v{ir.VectorType(t).shape[0]}{kind}" if isinstance(t, ir.VectorType) else kind
        none = ir.DenseI32ArrayAttr.get([])
        whole = f"llvm.{name}.{suffix}" if of_types else f"llvm.{name}"
        attributes = {"intrin": ir.StringAttr.get(whole), "op_bundle_sizes": none,
                      "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0])}
        return ir.Operation.create("llvm.call_intrinsic", results=[t], operands=list(operands),
                                   attributes=attributes).results[0]
    return build


def _approximate(op: Any) -> bool:
    return "fastmath" in op.attributes and "afn" in str(op.attributes["fastmath"])


def _instruction(name: str, of_types: bool = True) -> Any:
    """An intrinsic that has scalars alone."""
    scalar = _intrinsic(name, of_types)

    def build(x: Any) -> Any:
        if not isinstance(x.type, ir.VectorType):
            return scalar(x)
        parts = [vector_d.extract(x, [], [n]) for n in range(ir.VectorType(x.type).shape[0])]
        return vector_d.from_elements(x.type, [scalar(v) for v in parts])
    return build


_exp2, _sqrt, _abs, _trunc, _copysign = map(_intrinsic, ("exp2", "sqrt", "fabs", "trunc", "copysign"))


def _exp(x: Any) -> Any:
    t = x.type
    near = arith_d.minimumf(arith_d.maximumf(x, _constant(t, -RANGE)), _constant(t, RANGE))
    scale = _constant(t, LOG2E)
    rounded = arith_d.mulf(near, scale)
    lost = math_d.fma(near, scale, arith_d.negf(rounded))
    lost = math_d.fma(near, _constant(t, LOG2E_LOW), lost)
    return arith_d.mulf(_exp2(rounded), math_d.fma(lost, _constant(t, math.log(2)), _constant(t, 1.0)))


def _short_exp(power: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: power(arith_d.mulf(x, _constant(x.type, LOG2E)))


def _is_reciprocal(op: Any) -> bool:
    """Whether the operation is an f32 1 / x all of whose uses end in a 16-bit type."""
    return (op.name == "arith.divf" and _element(op.results[0].type).width == 32 and splat_of(op.operands[0]) == 1.0
            and bool(_narrow_ends(op.results[0], DEPTH, _RELATIVE)))


def _rsqrt(x: Any) -> Any:
    return arith_d.divf(_constant(x.type, 1.0), _sqrt(x))


def _remainder(x: Any, y: Any) -> Any:
    """C's fmod: the quotient may be one off after rounding, which one step repairs."""
    y = _abs(y)
    r = math_d.fma(arith_d.negf(_trunc(arith_d.divf(x, y))), y, x)
    less = arith_d.subf(_abs(r), y)
    r = arith_d.select(arith_d.cmpf(arith_d.CmpFPredicate.OGE, less, _constant(x.type, 0.0)), _copysign(less, x), r)
    signs = arith_d.mulf(_copysign(_constant(x.type, 1.0), x), r)
    crossed = arith_d.cmpf(arith_d.CmpFPredicate.OLT, signs, _constant(x.type, 0.0))
    r = arith_d.select(crossed, _copysign(arith_d.subf(y, _abs(r)), x), r)
    return _copysign(r, x)


def _erf(x: Any) -> Any:
    t = arith_d.minimumf(_abs(x), _constant(x.type, 4.0))
    return _copysign(arith_d.subf(_constant(x.type, 1.0), _power(_ERF, t)), x)


def _gelu(op: Any) -> bool:
    """Writes the x / 2 * (1 + erf(c x)) around the erf `op` as one; False where there is none."""
    scaled, one = product(op.operands[0]), only_user(op, "arith.addf")
    whole = only_user(one, "arith.mulf") if one is not None else None
    if scaled is None or whole is None or {1.0} != {splat_of(v) for v in one.operands if v != op.results[0]}:
        return False
    half = next((h for h in map(product, whole.operands) if h is not None and h[1] == 0.5), None)
    x, c = scaled
    if half is None or half[0] != x or c <= 0:
        return False
    degree = len(_ERFC)
    scaled_terms = tuple(p * c ** (degree - n) for n, p in enumerate(_ERFC))     # P(c t) c t as a polynomial in t
    with whole.location, ir.InsertionPoint(whole):
        t = arith_d.minimumf(_abs(x), _constant(x.type, GELU_END))
        tail = _power(scaled_terms, t, -1.0)
        positive = arith_d.maximumf(x, _constant(x.type, 0.0))
        whole.results[0].replace_all_uses_with(math_d.fma(arith_d.negf(t), tail, positive))
    for dead in (whole, one, op):
        dead.erase()
    return True


def _power(polynomial: tuple[float, ...], t: Any, last: float = 0.0) -> Any:
    """2^(t * P(t) + last) by the instruction."""
    p = _constant(t.type, polynomial[0])
    for c in polynomial[1:]:
        p = math_d.fma(p, t, _constant(t.type, c))
    power = math_d.fma(p, t, _constant(t.type, last)) if last else arith_d.mulf(p, t)
    return math_d.exp2(power, fastmath=arith_d.FastMathFlags.afn)


def _narrow_ends(value: Any, depth: int, steps: tuple[str, ...] = _ARITHMETIC) -> set[Any]:
    """The types below 32 bits that every use of `value` ends in, through at most `depth` operations of `steps`; empty
    where one ends elsewhere."""
    if _element(value.type).width < 32:
        return {_element(value.type)}
    users = [u.owner.operation for u in value.uses]
    if depth == 0 or any(user.name not in steps for user in users):
        return set()
    ends = [_narrow_ends(r, depth - 1, steps) for user in users for r in user.results]
    return set().union(*ends) if all(ends) else set()


_ERFC = (-1.94258778e-3, 2.42517497e-2, -1.38872266e-1, -9.2557627e-1, -1.62630975)
_ERF = (2.27064593e-4, -4.04117256e-3, 3.14845331e-2, -1.50091901e-1, -9.18058634e-1, -1.62793386)
_BUILD = {"math.exp": _exp, "math.exp2": _exp2, "math.rsqrt": _rsqrt, "math.sqrt": _sqrt,
          "math.absf": _abs, "math.ceil": _intrinsic("ceil"), "math.copysign": _copysign,
          "math.floor": _intrinsic("floor"), "math.round": _intrinsic("round"),
          "math.roundeven": _intrinsic("roundeven"), "math.trunc": _trunc, "arith.remf": _remainder,
          "arith.maxnumf": _intrinsic("maxnum"), "arith.minnumf": _intrinsic("minnum")}
_ANY_WIDTH = tuple(name for name in _BUILD if name not in ("math.exp", "math.exp2"))

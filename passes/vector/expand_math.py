"""expand-math: transcendental functions become arithmetic on lanes, so that no target needs a math library.

    %y = math.exp %x : vector<4x32xf32>      becomes fma, bitcasts, shifts and selects of the same type

A gelu around an erf or a tanh is one polynomial (passes/vector/math/gelu.py). Where the chip has an instruction for
x * 2**n with results that may be subnormal, vectors keep ``xcc.scale`` for unroll-vectors to write it.
f16 and bf16 are computed in f32, f64 has polynomials of its own. Integer division gets a divisor that cannot
trap, and is one of floats for vectors of 32 bits and of places on chips with AVX-512, but by constants.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from xcc._mlir import Module, Operation, Type, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.lanes import SCALE, Lanes, element, has_instruction
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.values import op
from xcc.passes.vector.math import double, double_trigonometry, elementary, trigonometry
from xcc.passes.vector.math.gelu import fuse_gelu
from xcc.passes.walk import ops_where
from xcc.targets.base import Chip

_NAMES = ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "exp", "exp2",
          "expm1", "log", "log10", "log1p", "log2", "power", "sin", "sinh", "tan", "tanh")


def _functions(*modules: ModuleType) -> dict[str, Callable[..., Lanes]]:
    """By the name of the op, those of the first module that has them."""
    found = {n: next(getattr(m, n) for m in modules if hasattr(m, n)) for n in _NAMES}
    return {f"math.{'powf' if n == 'power' else n}": f for n, f in found.items()} | {
        "math.rsqrt": lambda x: 1.0 / x.sqrt()}


_FUNCTIONS = _functions(elementary, trigonometry)
_DOUBLE = _functions(double, double_trigonometry)
_SCALED = (elementary.exp, elementary.exp2)
_BRANCHED = (trigonometry.sin, trigonometry.cos, trigonometry.tan, elementary.log, elementary.log2, elementary.log10,
             elementary.log1p, double_trigonometry.sin, double_trigonometry.cos, double_trigonometry.tan)
"""On CPUs lanes that are all of a common size go another way."""
_EXACT = 53         # bits of whole numbers that f64 holds
_DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
_ROUNDED = ("math.sqrt", "math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc", "math.fma")
_EXPANDED = {*_FUNCTIONS, *_DIVISIONS, *_ROUNDED}


@register_pass
class ExpandMath(Pass):
    """Lowers math ops to arithmetic; scalars and vectors of any shape."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for o in ops_where(module, lambda o: o.name in _EXPANDED, outer_first=True):
            if o.name in ("math.erf", "math.tanh") and fuse_gelu(o, ctx.chip):
                continue
            with ir.InsertionPoint(o), o.location:
                _expand(o, _scales(o, ctx.chip), branches=ctx.chip is not None and ctx.chip.warp == 1)
        for o in ops_where(module, lambda o: o.name == SCALE, outer_first=True):
            if not _scales(o, ctx.chip):
                with ir.InsertionPoint(o), o.location:
                    y = elementary.in_two_steps(Lanes(o.operands[0]), Lanes(o.operands[2]))
                o.results[0].replace_all_uses_with(y.v)
                o.erase()


def _scales(o: Operation, chip: Chip | None) -> bool:
    """Whether the chip has an instruction for x * 2**n of the lanes of `o`."""
    return isinstance(o.results[0].type, ir.VectorType) and has_instruction(chip)


def _expand(o: Operation, scales: bool, branches: bool) -> None:
    elem = element(o.results[0].type)
    operands = [Lanes(v) for v in o.operands]
    if o.name in _DIVISIONS:
        _guard_division(o, *operands)
        if scales and splat_of(o.operands[1]) is None and _bits(elem) <= _EXACT:
            _divide_floats(o)
        return
    narrow = isinstance(elem, ir.FloatType) and elem.width < 32
    if not narrow and o.name in _ROUNDED:
        return
    if narrow:
        operands = [x.cast("extf", ir.F32Type.get()) for x in operands]
    if o.name in _ROUNDED:
        y = Lanes(op(o.name, [operands[0].type], [x.v for x in operands]))
    else:
        functions = _DOUBLE if isinstance(elem, ir.F64Type) else _FUNCTIONS
        far = {"lowest": elementary.LOWEST_SCALED} if scales and functions[o.name] in _SCALED else {}
        branch = {"branch": branches} if functions[o.name] in _BRANCHED else {}
        y = _constant_power(o, operands[0]) or functions[o.name](*operands, **far, **branch)
    if narrow:
        y = y.cast("truncf", elem)
    o.results[0].replace_all_uses_with(y.v)
    o.erase()


def _constant_power(o: Operation, x: Lanes) -> Lanes | None:
    """x**2 and its like as products."""
    value = splat_of(o.operands[1]) if o.name == "math.powf" else None
    if value == 2.0:
        return x * x
    if value == 3.0:
        return x * x * x
    if value == 1.0:
        return x
    return 1.0 / x if value == -1.0 else None


def _guard_division(o: Operation, a: Lanes, b: Lanes) -> None:
    """A zero divisor, or -1 below the lowest integer, becomes 1: processors trap on both."""
    if isinstance(element(a.type), ir.IndexType) or splat_of(o.operands[1]) not in (None, 0, -1):
        return
    bad = b.compare("eq", 0)
    if o.name.endswith("si"):
        lowest = -(1 << (element(a.type).width - 1))
        bad = bad | (a.compare("eq", lowest) & b.compare("eq", -1))
    o.operands[1] = bad.select(1, b).v


def _bits(elem: Type) -> int:
    """Of the largest integers of this type; places in memory are below 2**53."""
    return _EXACT if isinstance(elem, ir.IndexType) else int(elem.width)


def _divide_floats(o: Operation) -> None:
    """A quotient or a remainder of integer lanes by a quotient in floats that hold them, of which vectors have one.

    a/b of whole numbers is 1/b or more short of the next whole number, and rounding moves it by less.
    """
    elem, signed = element(o.results[0].type), "s" if o.name.endswith("si") else "u"
    a, b = (Lanes(v) for v in o.operands)
    is_index = isinstance(elem, ir.IndexType)
    if is_index:
        a, b = (x.cast("index_cast", ir.IntegerType.get_signless(64)) for x in (a, b))
        signed = "s"
    whole, wide = a.element, ir.F32Type.get() if _bits(elem) <= 16 else ir.F64Type.get()
    x, y = (v.cast(f"{signed}itofp", wide) for v in (a, b))
    q = (x / y).unary("math.trunc")
    r = (q if "div" in o.name else (-q).fma(y, x)).cast(f"fpto{signed}i", whole)
    o.results[0].replace_all_uses_with((r.cast("index_cast", elem) if is_index else r).v)
    o.erase()

"""A small expression builder for code that runs on every lane: scalars and vectors of any shape alike."""

from __future__ import annotations

from xcc._mlir import Type, Value, ir
from xcc.passes.shared.values import op, splat_constant
from xcc.targets.base import Chip

SCALE = "xcc.scale"     # (x, n in f32, n in i32) -> x * 2**n; only inside expand-math, and from there to unroll-vectors
LOOKUP = "xcc.lookup"   # (n in i32) {table of 16 f32} -> table[n modulo 16]; as SCALE, on chips that have one
_CMPF = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "ueq": 8, "une": 13, "uno": 14}
_CMPI = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6}


def element(t: Type) -> Type:
    return ir.VectorType(t).element_type if isinstance(t, ir.VectorType) else t


def with_element(t: Type, elem: Type) -> Type:
    """The type `t` with another element type."""
    return ir.VectorType.get(ir.VectorType(t).shape, elem) if isinstance(t, ir.VectorType) else elem


def has_instruction(chip: Chip | None) -> bool:
    """Whether a chip has AVX-512's, for `Lanes.scaled` and for `Lanes.lookup`."""
    return chip is not None and bool(chip.scales_lanes)


class Lanes:
    """A value with operators. Numbers on the right become constants of the value's type."""

    __slots__ = ("v",)

    def __init__(self, v: Value) -> None:
        self.v = v

    @property
    def type(self) -> Type:
        return self.v.type

    @property
    def element(self) -> Type:
        return element(self.v.type)

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, ir.FloatType)

    def const(self, x: float | int) -> Lanes:
        """A constant of this value's type."""
        return Lanes(splat_constant(self.type, x))

    def _other(self, x: float | Lanes) -> Value:
        return x.v if isinstance(x, Lanes) else splat_constant(self.type, x)

    def _binary(self, name: str, x: float | Lanes) -> Lanes:
        return Lanes(op(f"arith.{name}{'f' if self.is_float else 'i'}", [self.type], [self.v, self._other(x)]))

    def __add__(self, x: float | Lanes) -> Lanes:
        return self._binary("add", x)

    def __sub__(self, x: float | Lanes) -> Lanes:
        return self._binary("sub", x)

    def __mul__(self, x: float | Lanes) -> Lanes:
        return self._binary("mul", x)

    def __truediv__(self, x: Lanes) -> Lanes:
        return Lanes(op("arith.divf", [self.type], [self.v, self._other(x)]))

    def __rsub__(self, x: float) -> Lanes:
        return self.const(x) - self

    def __rtruediv__(self, x: float) -> Lanes:
        return self.const(x) / self

    def __neg__(self) -> Lanes:
        return Lanes(op("arith.negf", [self.type], [self.v])) if self.is_float else self.const(0) - self

    def __and__(self, x: int | Lanes) -> Lanes:
        return Lanes(op("arith.andi", [self.type], [self.v, self._other(x)]))

    def __or__(self, x: int | Lanes) -> Lanes:
        return Lanes(op("arith.ori", [self.type], [self.v, self._other(x)]))

    def __xor__(self, x: int | Lanes) -> Lanes:
        return Lanes(op("arith.xori", [self.type], [self.v, self._other(x)]))

    def __lshift__(self, x: int) -> Lanes:
        return Lanes(op("arith.shli", [self.type], [self.v, self._other(x)]))

    def sar(self, x: int) -> Lanes:
        """Arithmetic shift right."""
        return Lanes(op("arith.shrsi", [self.type], [self.v, self._other(x)]))

    def shr(self, x: int) -> Lanes:
        """Logical shift right."""
        return Lanes(op("arith.shrui", [self.type], [self.v, self._other(x)]))

    def fma(self, b: float | Lanes, c: float | Lanes) -> Lanes:
        """self*b + c, rounded once."""
        return Lanes(op("math.fma", [self.type], [self.v, self._other(b), self._other(c)]))

    def compare(self, how: str, x: float | Lanes) -> Lanes:
        """i1 lanes; `how` is a predicate of arith.cmpf or arith.cmpi."""
        code = _CMPF[how] if self.is_float else _CMPI[how]
        t = with_element(self.type, ir.IntegerType.get_signless(1))
        i64 = ir.IntegerType.get_signless(64)
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        return Lanes(op(name, [t], [self.v, self._other(x)], predicate=ir.IntegerAttr.get(i64, code)))

    def select(self, a: Lanes | float, b: Lanes | float) -> Lanes:
        """`a` where these i1 lanes are true, else `b`; one of the two may be a number."""
        like = a if isinstance(a, Lanes) else b
        assert isinstance(like, Lanes)
        return Lanes(op("arith.select", [like.type], [self.v, like._other(a), like._other(b)]))

    def all(self) -> Value:
        """Whether all of these i1 lanes are true, an i1."""
        if not isinstance(self.type, ir.VectorType):
            return self.v
        rank, kind = ir.VectorType(self.type).rank, ir.Attribute.parse("#vector.kind<and>")
        if rank == 1:
            return op("vector.reduction", [self.element], [self.v], kind=kind)
        dims = ir.DenseI64ArrayAttr.get(list(range(rank)))
        true = op("arith.constant", [self.element], [], value=ir.IntegerAttr.get(self.element, 1))
        return op("vector.multi_reduction", [self.element], [self.v, true], reduction_dims=dims, kind=kind)

    def bits(self) -> Lanes:
        """The bits of floats as integers, and the other way."""
        e = element(self.type)
        to = ir.IntegerType.get_signless(e.width) if self.is_float else \
            {32: ir.F32Type, 64: ir.F64Type, 16: ir.F16Type}[e.width].get()
        return Lanes(op("arith.bitcast", [with_element(self.type, to)], [self.v]))

    def cast(self, name: str, elem: Type) -> Lanes:
        """One of arith's casts, such as ``extf``."""
        return Lanes(op(f"arith.{name}", [with_element(self.type, elem)], [self.v]))

    def scaled(self, exponent: Lanes, whole: Lanes) -> Lanes:
        """self * 2**n, rounded once; `exponent` is n in f32, `whole` in i32. Expand-math picks the form."""
        return Lanes(op(SCALE, [self.type], [self.v, exponent.v, whole.v]))

    def lookup(self, table: list[float]) -> Lanes:
        """The f32 that `table` has for the lowest four bits of each i32 lane; for chips with `has_instruction`."""
        return Lanes(op(LOOKUP, [with_element(self.type, ir.F32Type.get())], [self.v],
                        table=ir.DenseF32ArrayAttr.get(table)))

    def unary(self, name: str) -> Lanes:
        return Lanes(op(name, [self.type], [self.v]))

    def abs(self) -> Lanes:
        return self.unary("math.absf")

    def sqrt(self) -> Lanes:
        return self.unary("math.sqrt")

    def copysign(self, sign: Lanes) -> Lanes:
        return Lanes(op("math.copysign", [self.type], [self.v, sign.v]))

    def at_most(self, x: float) -> Lanes:
        """min(self, x); NaN stays."""
        return self.compare("ogt", x).select(self.const(x), self)

    def at_least(self, x: float) -> Lanes:
        """max(self, x); NaN stays."""
        return self.compare("olt", x).select(self.const(x), self)

    def poly(self, coefficients: list[float]) -> Lanes:
        """Horner's rule, the highest power first."""
        total = self.const(coefficients[0])
        for c in coefficients[1:]:
            total = total.fma(self, c)
        return total

"""Arithmetic that targets lack, by what they have; the same for scalars and tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Operation, Value, arith_d, ir, owner_op
from xcc.diagnostics import UserError
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.values import splat_constant
from xcc.passes.tile.lowering.ranges import modulus, nonnegative
from xcc.passes.tile.lowering.vectors import element_of, like

_I = arith_d.CmpIPredicate


def _safe(b: Value) -> Value:
    """A divisor that a CPU does not stop at: 1 in place of 0."""
    known = splat_of(b)
    if known:
        return b
    one = splat_constant(b.type, 1)
    return arith_d.select(arith_d.cmpi(_I.eq, b, splat_constant(b.type, 0)), one, b)


def _divided(build: Callable[[Value, Value], Value]) -> Callable[[Operation, list[Value]], list[Value]]:
    return lambda _source, values: [build(values[0], _safe(values[1]))]


def _floor_divide(source: Operation, values: list[Value]) -> list[Value]:
    """arith.floordivsi: the quotient towards 0, less one where that is above."""
    a, b = values[0], _safe(values[1])
    if all(nonnegative(v) for v in source.operands):
        return [arith_d.divui(a, b)]
    quotient = arith_d.divsi(a, b)
    some, apart = _rest(arith_d.remsi(a, b), b)
    return [arith_d.select(arith_d.andi(some, apart), arith_d.subi(quotient, splat_constant(a.type, 1)), quotient)]


def _rest(rest: Value, divisor: Value) -> tuple[Value, Value]:
    """Whether a division towards 0 leaves a rest, and whether that has another sign than the divisor."""
    zero = splat_constant(rest.type, 0)
    return arith_d.cmpi(_I.ne, rest, zero), \
        arith_d.xori(arith_d.cmpi(_I.slt, rest, zero), arith_d.cmpi(_I.slt, divisor, zero))


def _subtract(source: Operation, values: list[Value]) -> list[Value]:
    """arith.subi: a - a // b * b is the remainder, which has no more bits than b."""
    a, product = values
    if modulus(source) is None:
        return [arith_d.subi(a, product)]
    b = _safe(owner_op(product).operands[1])
    if nonnegative(source.operands[0]) and nonnegative(source.results[0]):
        return [arith_d.remui(a, b)]
    rest = arith_d.remsi(a, b)
    return [arith_d.select(arith_d.andi(*_rest(rest, b)), arith_d.addi(rest, b), rest)]


def _ceil_divide(source: Operation, values: list[Value]) -> list[Value]:
    """arith.ceildivsi: the quotient towards 0, and one more where that is below."""
    a, b = values[0], _safe(values[1])
    quotient = arith_d.divsi(a, b)
    some, apart = _rest(arith_d.remsi(a, b), b)
    more = arith_d.andi(some, arith_d.xori(apart, splat_constant(apart.type, 1)))
    return [arith_d.select(more, arith_d.addi(quotient, splat_constant(a.type, 1)), quotient)]


def _extended(source: Operation, values: list[Value]) -> list[Value]:
    """arith.mului_extended and mulsi_extended of up to 32 bits, in twice as many."""
    element = element_of(values[0])
    if isinstance(element, ir.IndexType) or element.width > 32:
        raise UserError(f"{source.location}: {source.name} of {element}: 32 bits at most")
    bits = element.width
    double = like(values[0], ir.IntegerType.get_signless(2 * bits))
    widen = arith_d.extui if source.name == "arith.mului_extended" else arith_d.extsi
    product = arith_d.muli(*(widen(double, v) for v in values))
    high = arith_d.shrui(product, splat_constant(double, bits))
    return [arith_d.trunci(values[0].type, product), arith_d.trunci(values[0].type, high)]


EXPANSIONS: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "arith.ceildivsi": _ceil_divide, "arith.floordivsi": _floor_divide, "arith.mului_extended": _extended,
    "arith.mulsi_extended": _extended, "arith.subi": _subtract,
    **{f"arith.{name}": _divided(getattr(arith_d, name)) for name in ("divsi", "divui", "remsi", "remui")},
}

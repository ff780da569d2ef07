"""Symbolic dimensions as index arithmetic in the IR, and powers of two of sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcc._mlir import Attribute, Value, ir
from xcc.passes.shared.regions import repeat
from xcc.passes.shared.values import index, op, predicate
from xcc.symbolic import Dim, Expr, bare_symbol, float_of, parse

_CALLS = {"floordiv": "arith.floordivsi", "truncdiv": "arith.divsi", "max": "arith.maxsi", "min": "arith.minsi"}


def pow2_above(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << max(0, n - 1).bit_length()


def emit_dim(dim: Dim, symbols: Mapping[str, Value], natural: bool = False) -> Value:
    """An index value equal to `dim`; `symbols` maps names to index values. natural: none of these is below 0, so that
    dividing one by a power of two is a shift."""
    if not isinstance(dim, Expr):
        return index(dim)
    total: Any = None
    for monomial, coefficient in dim.terms:
        value: Any = None if monomial else index(coefficient)
        for n, atom in enumerate(monomial):
            factor = symbols[atom[0]] if len(atom) == 1 else _call(atom, symbols, natural)
            value = factor if n == 0 else op("arith.muli", [factor.type], [value, factor])
        if monomial and coefficient != 1:
            value = op("arith.muli", [value.type], [value, index(coefficient)])
        total = value if total is None else op("arith.addi", [value.type], [total, value])
    return total


def emit_size(dim: Dim, symbols: Mapping[str, Value]) -> Value:
    """An index value equal to the size `dim`: where that is c * (n // k), n is not below 0."""
    return emit_dim(dim, symbols, isinstance(dim, Expr) and len(dim.terms) == 1 and len(dim.terms[0][0]) == 1)


def _call(atom: tuple[str, int | Expr, int | Expr], symbols: Mapping[str, Value], natural: bool) -> Value:
    if atom[0] in ("root", "scaled"):
        return _by_float(atom, emit_dim(atom[1], symbols, natural))
    a, b = emit_dim(atom[1], symbols, natural), emit_dim(atom[2], symbols, natural)
    if atom[0] == "divisor":
        return _largest_divisor(a, b)
    if natural and atom[0] == "floordiv" and bare_symbol(atom[1]) and isinstance(atom[2], int):
        return op("arith.divui", [a.type], [a, b])
    if atom[0] not in ("max", "min") and not isinstance(atom[2], int):
        b = _divisor(b)
    if atom[0] in _CALLS:
        return op(_CALLS[atom[0]], [a.type], [a, b])
    quotient = op("arith.floordivsi", [a.type], [a, b])
    return op("arith.subi", [a.type], [a, op("arith.muli", [a.type], [quotient, b])])


def _by_float(atom: tuple[str, int | Expr, int | Expr], a: Value) -> Value:
    """A root of numbers below 2^52, or a product by a float, rounded down."""
    i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
    if atom[0] == "root":
        a = op("arith.maxsi", [a.type], [a, index(0)])
    x = op("arith.sitofp", [f64], [op("arith.index_cast", [i64], [a])])
    if atom[0] == "root":
        exact = op("math.sqrt", [f64], [x])
    else:
        assert isinstance(atom[2], int)
        factor = op("arith.constant", [f64], [], value=ir.FloatAttr.get(f64, float_of(atom[2])))
        exact = op("math.floor", [f64], [op("arith.mulf", [f64], [x, factor])])
    return op("arith.index_cast", [a.type], [op("arith.fptosi", [i64], [exact])])


def _largest_divisor(a: Value, most: Value) -> Value:
    """The largest number up to `most` that divides `a`, found by trying them; 1 where there is none."""
    def left_over(carried: list[Value]) -> Value:
        rest = op("arith.remsi", [a.type], [a, carried[0]])
        wanted = [op("arith.cmpi", [ir.IntegerType.get_signless(1)], [v, index(n)], predicate=predicate(p))
                  for v, n, p in ((rest, 0, "ne"), (carried[0], 1, "sgt"))]
        return op("arith.andi", [wanted[0].type], wanted)

    first = op("arith.maxsi", [a.type], [op("arith.minsi", [a.type], [a, most]), index(1)])
    return repeat([first], left_over, lambda carried: [op("arith.subi", [a.type], [carried[0], index(1)])])[0]


def _divisor(b: Any) -> Any:
    """`b`, 1 for a size of 0: what is divided by it is of no use, but must not end the process."""
    zero = op("arith.cmpi", [ir.IntegerType.get_signless(1)], [b, index(0)], predicate=predicate("eq"))
    return op("arith.select", [b.type], [zero, index(1), b])


def read_dim(attr: Attribute) -> Dim:
    """A dim of an ``xt.arg_dims`` list: an i64 or text."""
    return parse(ir.StringAttr(attr).value) if isinstance(attr, ir.StringAttr) else int(ir.IntegerAttr(attr).value)

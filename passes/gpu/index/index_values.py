"""What is known about index values: numbers that divide them, and what they are in terms of the kernel's symbols."""

from __future__ import annotations

import math
from typing import Any

from xcc import symbolic
from xcc._mlir import Operation, Value, ir, maker, parent_op
from xcc.diagnostics import CompilerBug
from xcc.passes.shared.patterns import int_constant
from xcc.symbolic import Dim

DYNAMIC = -9223372036854775808
MAX_DIVISOR = 1 << 20


def divisor(value: Value) -> int:
    """A power of two or multiple known to divide an index value; 1 when nothing is known."""
    fixed = int_constant(value)
    if fixed is not None:
        return abs(fixed) if fixed else MAX_DIVISOR
    op = maker(value)
    if op is None:
        return _induction_divisor(value)
    if op.name == "arith.muli":
        return capped(divisor(op.operands[0]) * divisor(op.operands[1]))
    if op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui",
                   "arith.remsi", "arith.remui"):
        return math.gcd(divisor(op.operands[0]), divisor(op.operands[1]))
    if op.name == "arith.select":
        return math.gcd(divisor(op.operands[1]), divisor(op.operands[2]))
    if op.name in ("arith.index_cast", "arith.extsi", "arith.extui"):
        return divisor(op.operands[0])
    return 1


def capped(n: int) -> int:
    """A divisor of `n` that is at most `MAX_DIVISOR`."""
    return n if n <= MAX_DIVISOR else math.gcd(n, MAX_DIVISOR)


def _induction_divisor(value: Value) -> int:
    """For the induction variables of scf.for and scf.forall."""
    parent = parent_op(value)
    number = ir.BlockArgument(value).arg_number
    if parent.name == "scf.for" and number == 0:
        return math.gcd(divisor(parent.operands[0]), divisor(parent.operands[2]))
    if parent.name == "scf.forall":
        lower, _, step = forall_bounds(parent)
        if number < len(step):
            return math.gcd(*(abs(b) if isinstance(b, int) and b else MAX_DIVISOR if isinstance(b, int) else divisor(b)
                              for b in (lower[number], step[number])))
    return 1


def forall_bounds(op: Operation) -> tuple[list[int], list[Value | int], list[int]]:
    """Lower bounds, upper bounds and steps of an scf.forall: ints where static, values where not."""
    operands = list(op.operands)
    out = []
    for name in ("staticLowerBound", "staticUpperBound", "staticStep"):
        row: list[Any] = []
        for n in ir.DenseI64ArrayAttr(op.attributes[name]):
            row.append(operands.pop(0) if n == DYNAMIC else n)
        out.append(row)
    return out[0], out[1], out[2]


_BINARY = {"arith.addi": lambda a, b: a + b, "arith.subi": lambda a, b: a - b, "arith.muli": lambda a, b: a * b,
           "arith.ceildivsi": symbolic.ceildiv, "arith.ceildivui": symbolic.ceildiv,
           "arith.floordivsi": symbolic.floordiv, "arith.divsi": symbolic.floordiv, "arith.divui": symbolic.floordiv,
           "arith.maxsi": symbolic.dim_max, "arith.minsi": symbolic.dim_min, "arith.maxui": symbolic.dim_max,
           "arith.minui": symbolic.dim_min, "arith.remsi": symbolic.mod, "arith.remui": symbolic.mod}


def symbolic_value(value: Value | int, symbols: dict[Value, Dim]) -> Dim:
    """An index value as an expression of the kernel's symbols; a CompilerBug when it depends on data."""
    if isinstance(value, int):
        return value
    if value in symbols:
        return symbols[value]
    fixed = int_constant(value)
    if fixed is not None:
        return fixed
    op = maker(value)
    if op is not None and op.name in _BINARY:
        result: Dim = _BINARY[op.name](symbolic_value(op.operands[0], symbols),
                                       symbolic_value(op.operands[1], symbols))
        return result
    if op is not None and op.name == "arith.index_cast":
        return symbolic_value(op.operands[0], symbols)
    what = op.name if op is not None else "a block argument"
    raise CompilerBug(f"the number of workgroups depends on {what}, which is no function of the kernel's symbols")


def kernel_symbols(func: Operation) -> dict[Value, Dim]:
    """The trailing index arguments of a kernel as symbols."""
    attributes = func.operation.attributes
    arguments = list(func.operation.regions[0].blocks[0].arguments)
    names = [s.value for s in attributes["xt.symbols"]] if "xt.symbols" in attributes else \
        [f"d{i}" for i in range(sum(isinstance(a.type, ir.IndexType) for a in arguments))]
    return {a: symbolic.sym(n) for a, n in zip(arguments[len(arguments) - len(names):], names, strict=True)}

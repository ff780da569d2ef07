"""Ranges of index values (interval arithmetic)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import product

from xcc._mlir import Operation, ir
from xcc.passes.shared.patterns import int_constant

Range = tuple[int, int]
"""The least and the largest value."""

_CORNERS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.minsi": min,
    "arith.maxsi": max}
_UNION = ("vector.broadcast", "vector.shuffle", "vector.extract", "vector.from_elements")


def range_of(op: Operation, given: Sequence[Range]) -> Range | None:
    """The range of the result of an operation whose index operands have the ranges `given`; None where not known."""
    name = op.name
    if name == "arith.constant":
        fixed = int_constant(op.results[0])
        if fixed is not None:
            return fixed, fixed
        numbers = list(ir.DenseIntElementsAttr(op.attributes["value"]))
        return min(numbers), max(numbers)
    if name == "vector.step":
        return 0, ir.VectorType(op.results[0].type).shape[0] - 1
    if name in _CORNERS:
        found = [_CORNERS[name](a, b) for a, b in product(*given)]
        return min(found), max(found)
    if name == "arith.select" or name in _UNION:
        return min(low for low, _ in given), max(high for _, high in given)
    if name in ("arith.divsi", "arith.floordivsi", "arith.remsi") and any(low < 0 for low, _ in given):
        most = max(map(abs, given[0])) if name != "arith.remsi" else max(map(abs, given[1])) - 1
        return -most, most
    if any(low < 0 for low, _ in given):
        return None
    (_, a), (least, b) = given[0], given[-1]
    if name in ("arith.minui", "arith.andi"):
        return 0, min(a, b)
    if name in ("arith.maxui", "arith.ori", "arith.xori"):
        return 0, (1 << max(a, b).bit_length()) - 1
    if name in ("arith.remui", "arith.remsi"):
        return 0, min(a, max(0, b - 1))
    if name in ("arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivui", "arith.ceildivsi"):
        return 0, -(-a // max(1, least))
    if name in ("arith.shrui", "arith.shrsi"):
        return 0, a >> least
    if name == "arith.shli" and b < 64:
        return 0, a << b
    return None

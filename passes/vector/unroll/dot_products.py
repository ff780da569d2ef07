"""Dot product instructions: each lane of an accumulator gets the sum of a group of products of narrow elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import Value, ir
from xcc.passes.shared.dot_instructions import DotProduct
from xcc.passes.shared.values import op, shuffle, splat_constant, vec


def dot_product(there: Sequence[DotProduct], acc: Value, sides: Sequence[Value], unsigned: set[int]) -> Value:
    """acc + the products of two vectors, summed by groups, by one of the instructions that are `there`; `unsigned` are
    the numbers of the unsigned sides.

    Exact for integers. bf16 is summed in f32.
    """
    width = ir.VectorType(acc.type).shape[0]
    elem = ir.VectorType(sides[0].type).element_type
    taken = "bf16" if isinstance(elem, ir.BF16Type) else "i8" if isinstance(elem, ir.IntegerType) else ""
    fitting = [d for d in there if width in d.intrinsics and d.element == taken]
    for d in sorted(fitting, key=lambda d: not d.pairs):
        if d.pairs:
            return _pairs(d.intrinsics[width], acc, sides, unsigned)
        if d.unsigned == unsigned:
            return _call(d.intrinsics[width], acc, sides)
        if d.unsigned == {1 - n for n in unsigned}:
            return _call(d.intrinsics[width], acc, sides[::-1])
    return _summed(acc, sides, unsigned)


def _call(name: str, acc: Value, sides: Sequence[Value]) -> Value:
    return op("llvm.call_intrinsic", [acc.type], [acc, *sides], intrin=ir.StringAttr.get(name),
              operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]), op_bundle_sizes=ir.DenseI32ArrayAttr.get([]))


def _pairs(name: str, acc: Value, sides: Sequence[Any], unsigned: set[int]) -> Any:
    """Bytes 0 and 2 of each group of 4 as a pair of i16, then bytes 1 and 3."""
    width = ir.VectorType(acc.type).shape[0]
    words = vec(2 * width, ir.IntegerType.get_signless(16))
    eight, low = (splat_constant(words, n) for n in (8, 0xFF))

    def op16(name: str, a: Any, b: Any) -> Any:
        return op(f"arith.{name}", [words], [a, b])

    whole = [op("vector.bitcast", [words], [v]) for v in sides]
    even = [op16("andi", v, low) if n in unsigned else op16("shrsi", op16("shli", v, eight), eight)
            for n, v in enumerate(whole)]
    odd = [op16("shrui" if n in unsigned else "shrsi", v, eight) for n, v in enumerate(whole)]
    for pair in (even, odd):
        both = op("llvm.call_intrinsic", [acc.type], pair, intrin=ir.StringAttr.get(name),
                  operandSegmentSizes=ir.DenseI32ArrayAttr.get([2, 0]), op_bundle_sizes=ir.DenseI32ArrayAttr.get([]))
        acc = op("arith.addi", [acc.type], [acc, both])
    return acc


def _summed(acc: Value, sides: Sequence[Any], unsigned: set[int]) -> Any:
    """The same in plain arithmetic, one element of the groups after the other."""
    from xcc.passes.vector.unroll.unroll_contract import extended, multiply_add

    elem, width = ir.VectorType(acc.type).element_type, ir.VectorType(acc.type).shape[0]
    group = ir.VectorType(sides[0].type).shape[0] // width
    for n in range(group):
        lanes = list(range(n, width * group, group))
        a, b = (extended(shuffle(v, v, lanes), elem, i in unsigned) for i, v in enumerate(sides))
        acc = multiply_add(a, b, acc)
    return acc


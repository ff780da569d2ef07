"""Indices of CPU gathers in 32 bits where they are known to be small; what all lanes share is the gather's offset.

    %r = arith.fptosi %clamped : vector<32xf32> to vector<32xi64>        %r = arith.fptosi ... to vector<32xi32>
    %i = arith.addi (arith.muli %r, %c40), (vector.broadcast %n)     ->  %i = arith.muli %r, %c40 : vector<32xi32>
    vector.gather %m[%c0] [%i] : ..., vector<32xindex>                   vector.gather %m[%n] [%i] : ..., vector<32xi32>

A gather then reads twice as many elements in an instruction, and its arithmetic is of half as many vectors. Small is
what is made of constants and of numbers that were clamped to constants: positions in an image of known size, whatever
the batch. The lower half of such a sum or product is that of its operands' lower halves, whatever those are.
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Type, Value, ir, maker, owner_op
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.values import op as built
from xcc.passes.walk import ops_where

MOST = 1 << 31
MOST_SUMS = 16
EXACT = ("arith.addi", "arith.muli")
Range = tuple[float, float]
UNKNOWN: Range = (-math.inf, math.inf)


@register_pass
class NarrowGathers(Pass):
    """Rewrites the index arithmetic of gathers in i32."""

    def run(self, module: Module, ctx: PassContext) -> None:
        twins: dict[Value, Value] = {}
        ranges: dict[Value, Range] = {}
        for op in ops_where(module, lambda o: o.name == "vector.gather"):
            if len(op.operands) == 5 and _is_index(op.operands[2].type):    # base, offset, indices, mask, else
                _gather(op.operation, twins, ranges)


def _gather(op: Operation, twins: dict[Value, Value], ranges: dict[Value, Range]) -> None:
    shared: list[Value] = []
    own: list[Value] = []
    for v in _addends(op.operands[2]):
        cast = maker(v, "vector.broadcast")
        if cast is not None and isinstance(cast.operands[0].type, ir.IndexType):
            shared.append(cast.operands[0])
        else:
            own.append(v)
    known = [_range(v, ranges) for v in own]
    if not own or max(-sum(low for low, _ in known), sum(high for _, high in known)) >= MOST:
        return
    parts = [_narrow(v, twins) for v in own]
    with ir.InsertionPoint(op), op.location:
        offset = op.operands[1]
        for v in shared:
            offset = built("arith.addi", [offset.type], [offset, v])
        index = parts[0]
        for v in parts[1:]:
            index = built("arith.addi", [index.type], [index, v])
    op.operands[1], op.operands[2] = offset, index


def _addends(value: Value) -> list[Value]:
    """What `value` is the sum of, as far as it has few parts."""
    parts = [value]
    for _ in range(MOST_SUMS):
        n = next((n for n, v in enumerate(parts) if maker(v, "arith.addi") is not None), None)
        if n is None:
            break
        parts[n:n + 1] = owner_op(parts[n]).operands
    return parts


def _range(value: Value, ranges: dict[Value, Range]) -> Range:
    """Bounds of all lanes of an index vector."""
    if value not in ranges:
        op = maker(value)
        ranges[value] = UNKNOWN if op is None else _bounds(op, ranges)
    return ranges[value]


def _bounds(op: Operation, ranges: dict[Value, Range]) -> Range:
    if op.name == "arith.constant":
        n = _number(op.results[0])
        return (n, n) if math.isfinite(n) else UNKNOWN
    if op.name == "vector.step":
        return 0, ir.VectorType(op.results[0].type).shape[0] - 1
    if op.name == "arith.index_cast":
        return _clamp_of(op) or UNKNOWN
    if op.name not in ("arith.addi", "arith.muli", "arith.minsi", "arith.maxsi"):
        return UNKNOWN
    (a, b), (c, d) = (_range(v, ranges) for v in op.operands)
    if op.name in ("arith.minsi", "arith.maxsi"):
        pick = min if op.name == "arith.minsi" else max
        return pick(a, c), pick(b, d)
    if not all(abs(n) < MOST for n in (a, b, c, d)):
        return UNKNOWN
    if op.name == "arith.addi":
        return a + c, b + d
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)


def _is_index(kind: Type) -> bool:
    return isinstance(kind, ir.VectorType) and isinstance(kind.element_type, ir.IndexType)


def _i32(kind: Type) -> Type:
    return ir.VectorType.get(kind.shape, ir.IntegerType.get_signless(32))


def _narrow(value: Value, twins: dict[Value, Value]) -> Value:
    """The lower 32 bits of `value`, of known range, computed in 32 bits as far as they come from sums and products."""
    if value not in twins:
        op = owner_op(value)
        parts = [_narrow(v, twins) for v in op.operands] if op.name in EXACT else []
        clamped = None if parts else _clamped_float(op)
        with ir.InsertionPoint.after(op), op.location:
            if clamped is not None:
                twins[value] = built("arith.fptosi", [_i32(value.type)], [clamped])
            else:
                twins[value] = built(op.name if parts else "arith.index_cast", [_i32(value.type)], parts or [value])
    return twins[value]


def _clamped_float(op: Operation) -> Value | None:
    """The floats whose whole parts `op` gives as indices, where they were clamped to 32 bits; else None."""
    bounds = _clamp_of(op) if op.name == "arith.index_cast" else None
    return owner_op(op.operands[0]).operands[0] if bounds is not None and max(map(abs, bounds)) < MOST else None


def _clamp_of(op: Operation) -> Range | None:
    """The constants between which an index_cast's floats were clamped."""
    whole = maker(op.operands[0], "arith.fptosi")
    highest = None if whole is None else maker(whole.operands[0], "arith.minimumf")
    lowest = None if highest is None else maker(highest.operands[0], "arith.maximumf")
    if highest is None or lowest is None:
        return None
    low, high = _number(lowest.operands[1]), _number(highest.operands[1])
    return (low, high) if -math.inf < low <= high < math.inf else None


def _number(value: Value) -> float:
    """What all lanes of a constant are; infinite where that is not known."""
    number = splat_of(value)
    return math.inf if number is None else number

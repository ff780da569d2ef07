"""One comparison of positions that two bounds apply to.

    %a = vector.broadcast (arith.cmpi slt, %c, %n) : vector<64x128xi1>      # %c : vector<1x128xindex>, %n for all
    %b = arith.cmpi sle, (vector.broadcast %c), (vector.broadcast %r)       # %r : vector<64x1xindex>, for each row
    %m = arith.andi %a, %b : vector<64x128xi1>
    ->
    %l = arith.minsi %n - 1, %r : vector<64x1xindex>
    %m = arith.cmpi sle, (vector.broadcast %c), (vector.broadcast %l)

So causal attention in a kernel, whose keys end somewhere and are hidden from a row on, asks once for each score.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc._mlir import InsertionPoint, Module, Operation, Value, arith_d, ir, maker, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import index
from xcc.passes.walk import ops_where

SLT, SLE, SGT, SGE = 2, 3, 4, 5     # arith.cmpi's predicates


@register_pass
class CommonBounds(Pass):
    """Joins the bounds of positions where one of them is the same for all."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in ops_where(module, lambda o: o.name == "arith.andi" and isinstance(o.results[0].type, ir.VectorType)):
            below = [_below(v) for v in op.operands]
            one, other = below if below[0] is None or below[0].is_scalar else below[::-1]
            if one is None or other is None or not one.is_scalar or one.positions != other.positions:
                continue
            with op.location, ir.InsertionPoint(op):
                op.results[0].replace_all_uses_with(_joined(one, other, op))
            op.erase()


@dataclass(frozen=True)
class _Below:
    """positions < bound + more, both as they are before they are broadcast."""

    positions: Value
    bound: Value
    more: int

    @property
    def is_scalar(self) -> bool:
        return not isinstance(self.bound.type, ir.VectorType)


def _below(value: Value) -> _Below | None:
    """What a mask says, where it compares positions with a bound."""
    op = maker(_unbroadcast(value), "arith.cmpi")
    compared = op.operands[0].type if op is not None else None
    if op is None or not isinstance(compared, ir.VectorType) or not isinstance(compared.element_type, ir.IndexType):
        return None
    kind = int(ir.IntegerAttr(op.attributes["predicate"]).value)
    left, right = map(_unbroadcast, op.operands)
    if kind in (SGT, SGE):
        left, right = right, left
    return _Below(left, right, int(kind in (SLE, SGE))) if kind in (SLT, SLE, SGT, SGE) else None


def _unbroadcast(value: Value) -> Value:
    while (op := maker(value, "vector.broadcast")) is not None:
        value = op.operands[0]
    return value


def _joined(one: _Below, other: _Below, op: Operation) -> Value:
    """The mask of positions below both bounds; a bound that is the same for all is changed where it is made, which may
    be ahead of a loop."""
    bound, limit = one.bound, other.bound
    if one.more != other.more:
        with _behind(bound):
            bound = arith_d.addi(bound, index(one.more - other.more))
    if not other.is_scalar:
        bound = vector_d.broadcast(limit.type, bound)
    kind = ir.VectorType.get(ir.VectorType(op.results[0].type).shape, ir.IndexType.get())
    sides = [vector_d.broadcast(kind, v) for v in (one.positions, arith_d.minsi(bound, limit))]
    return arith_d.cmpi(SLE if other.more else SLT, *sides)


def _behind(value: Value) -> InsertionPoint:
    """Where what is made of `value` can be made first."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    made = value.owner.operation
    rest = list(made.block.operations)
    return ir.InsertionPoint(rest[[o.operation for o in rest].index(made) + 1])

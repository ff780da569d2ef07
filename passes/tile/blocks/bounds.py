"""What a mask says of positions: the bound that is above each, and what else there is."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Operation, Value, arith_d, ir, maker
from xcc.passes.shared.patterns import splat_of
from xcc.passes.tile.blocks.affine import Affine, Axes, affine, axes_before
from xcc.passes.tile.lowering.vectors import element_of

__all__ = ["bounds_of"]

_I = arith_d.CmpIPredicate
_SWAPPED = {_I.slt: _I.sgt, _I.sgt: _I.slt, _I.sle: _I.sge, _I.sge: _I.sle}
_PREDICATES = {p.value: p for p in _SWAPPED}
Bounds = list[tuple[int, Affine]]


def bounds_of(mask: Value, positions: Sequence[Affine], axes: Axes) -> tuple[Bounds, bool]:
    """(d, b) for each dim of a buffer whose position is below b wherever the mask is on; and whether that is all that
    the mask says, positions inside the buffer given."""
    op = maker(mask)
    if op is None or op.name == "arith.constant":
        return [], op is not None and bool(splat_of(mask))
    if op.name == "arith.andi":
        parts = [bounds_of(v, positions, axes) for v in op.operands]
        return [b for part, _ in parts for b in part], all(whole for _, whole in parts)
    if op.name in ("tile.broadcast", "tile.reshape"):
        inner = axes_before(op, axes)
        return ([], False) if inner is None else bounds_of(op.operands[0], positions, inner)
    return _compared(op, positions, axes) if op.name == "arith.cmpi" else ([], False)


def _compared(op: Operation, positions: Sequence[Affine], axes: Axes) -> tuple[Bounds, bool]:
    predicate = _PREDICATES.get(ir.IntegerAttr(op.attributes["predicate"]).value)
    a, b = (affine(v, axes) for v in op.operands)
    if predicate is None or a is None or b is None or not isinstance(element_of(op.operands[0]), ir.IndexType):
        return [], False
    if a.axis is None and b.axis is not None:
        a, b, predicate = b, a, _SWAPPED[predicate]
    if b.axis is not None:
        return [], False
    for d, p in enumerate(positions):
        away = p.scalar + -a.scalar
        if p.axis != a.axis or (a.axis is None and away.known() is None):
            continue
        bound = b + away
        if predicate in (_I.slt, _I.sle):
            return [(d, bound if predicate == _I.slt else bound + Affine(constant=1))], True
        lowest = bound.known()      # a position at or above 0, as all inside a buffer are
        return [], lowest is not None and lowest + (predicate == _I.sgt) <= 0
    return [], False

"""The code of an instance, or two of it: for tiles that lie inside their buffers as a whole, and for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, scf_d
from xcc.passes.shared.values import index, is_vector
from xcc.passes.tile.lowering.views import value_of
from xcc.passes.tile.nests.loops import Wholes
from xcc.passes.walk import ops_where

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

PEELED = "xcc.peeled"       # of a scf.forall: instances whose tiles are whole have code of their own
_I = arith_d.CmpIPredicate


def masks_of_transfers(forall: Operation) -> list[Operation] | None:
    """The masks of an instance; None where one is more than the mask of loads and stores."""
    masks = ops_where(forall, lambda op: op.name == "vector.create_mask")
    plain = all(use.owner.operation.name in ("vector.transfer_read", "vector.transfer_write")
                for m in masks for use in m.results[0].uses)
    return masks if plain else None


def emit_instance(r: Retiler, forall: Operation) -> None:
    """The operations of the body of `forall` but for its last."""
    body = [o.operation for o in list(forall.regions[0].blocks[0].operations)[:-1]]
    if PEELED not in forall.attributes:
        _emit(r, body)
        return
    ahead = [o for o in body if _is_place(r, o)]
    rest = [o for o in body if o not in ahead]
    branch = scf_d.IfOp(_whole(r, masks_of_transfers(forall) or []), has_else=True)
    for block, whole in ((branch.then_block, True), (branch.else_block, False)):
        known, wholes = dict(r.kept), r.wholes
        with ir.InsertionPoint(block):
            r.whole, r.wholes = whole, Wholes(inside=whole)
            _emit(r, rest)
            scf_d.yield_([])
        r.kept, r.whole, r.wholes = known, False, wholes


def _emit(r: Retiler, operations: list[Operation]) -> None:
    for operation in operations:
        with operation.location:
            r.emit(operation)


def _is_place(r: Retiler, source: Operation) -> bool:
    """Whether `source` computes scalars of what is known where the instance begins, which it then does there."""
    if not source.name.startswith(("arith.", "memref.dim")) or any(map(is_vector, source.results)) \
            or not all(v in r.values for v in source.operands):
        return False
    with source.location:
        r.emit(source)
    return True


def _whole(r: Retiler, masks: list[Operation]) -> Value:
    """Whether all masks let everything through."""
    out: Any = None
    for mask in masks:
        for end, size in zip(mask.operands, ir.VectorType(mask.results[0].type).shape, strict=True):
            inside = arith_d.cmpi(_I.sge, value_of(r.get(end)), index(size))
            out = inside if out is None else arith_d.andi(out, inside)
    return out

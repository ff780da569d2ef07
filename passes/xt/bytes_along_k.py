"""Weights of products of bytes lie along the summed dim, where matrix instructions take four or more neighbours.

    %y = xt.dot_general(%x, %w) {rhs_contract = [0]}        ->  xt.dot_general(%x, transpose(%w)) {rhs_contract = [1]}
    %y = xt.convolution(%x, %w) {filter = "HWIO"}           ->  xt.convolution(%x, transpose(%w)) {filter = "OHWI"}

Weights are turned at compile time. Neighbours along another dim have to be gathered one by one: no instruction
transposes bytes on their way from shared memory, and wgmma takes them along k alone.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import PRODUCTS, name_of, rewrite
from xcc.passes.xt.quant.quantised import is_constant


@register_pass
class BytesAlongK(Pass):
    """Turns the weights of products of bytes, f8 among them, so that the summed dim is their last."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, dict.fromkeys(PRODUCTS, _turned))


def _turned(op: Operation) -> Value | None:
    """The product with other weights; None where they lie along the summed dim, sum over several, or are no bytes."""
    x, w = op.operands
    a, rank = xt.attrs_of(op), len(xt.shape_of(w))
    if any(xt.width(xt.TensorType.of(v).dtype) != 8 for v in (x, w)) or not is_constant(w):
        return None
    if name_of(op) == "convolution":
        if a.filter != "HWIO":
            return None
        turned = xt.transpose(w, perm=(rank - 1, *range(rank - 2), rank - 2))
        return xt.convolution(x, turned, **(vars(a) | {"filter": "OHWI"}))
    if len(a.rhs_contract) != 1 or a.rhs_contract[0] == rank - 1:
        return None
    k = a.rhs_contract[0]
    perm = (*(d for d in range(rank) if d != k), k)
    rest = vars(a) | {"rhs_contract": (rank - 1,), "rhs_batch": tuple(perm.index(d) for d in a.rhs_batch)}
    return xt.dot_general(x, xt.transpose(w, perm=perm), **rest)

"""Operands of products lie along the summed dim, where matrix instructions take them so alone.

    %y = xt.dot_general(%x, %w) {rhs_contract = [0]}        ->  xt.dot_general(%x, transpose(%w)) {rhs_contract = [1]}
    %y = xt.convolution(%x, %w) {filter = "HWIO"}           ->  xt.convolution(%x, transpose(%w)) {filter = "OHWI"}

No instruction transposes elements that do not have two bytes on their way from shared memory, and wgmma takes them
along k alone. Weights of bytes are turned at compile time. f32 operands that may be rounded to tf32 are turned when the
model runs, too, where a product's wgmma saves more than the copies cost.
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.lossy import ROUNDED
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import PRODUCTS, name_of, rewrite
from xcc.passes.xt.products.rounded import is_rounded
from xcc.passes.xt.quant.quantised import is_constant
from xcc.targets.base import Chip

LAUNCH_SECONDS = 2e-6
COPIED = 0.8        # of the memory's bandwidth, with which an operand is turned
SHARES = (0.3, 0.5)     # of the peak rate that tf32 reaches by warps' instructions and by wgmma (H100, 4096^3)
LEAST = 64          # rows and columns of a product, and its terms, for which wgmma is worth a thought


@register_pass
class OperandsAlongK(Pass):
    """Turns operands of products, of bytes (f8 among them) and of tf32, so that the summed dim is their last."""

    def run(self, module: Module, ctx: PassContext) -> None:
        def turned(op: Operation) -> Value | None:
            kinds = [xt.TensorType.of(v).dtype for v in op.operands]
            if all(xt.width(kind) == 8 for kind in kinds):
                return _turned(op, [False, is_constant(op.operands[1])])
            if kinds != ["f32", "f32"] or not is_rounded(op, ctx) or not ctx.chip.warpgroup_products:
                return None
            return _turned(op, [True, True]) if name_of(op) == "convolution" or _saves(op, ctx.chip) else None

        rewrite(module, dict.fromkeys(PRODUCTS, turned))


def _turned(op: Operation, may: list[bool]) -> Value | None:
    """The product with other operands, of the two those that `may` be turned; None where these lie along the summed dim
    already, or it sums over several."""
    a = xt.attrs_of(op)
    if name_of(op) == "convolution":
        w, rank = op.operands[1], len(xt.shape_of(op.operands[1]))
        if a.filter != "HWIO" or not may[1]:
            return None
        turned = xt.transpose(w, perm=(rank - 1, *range(rank - 2), rank - 2))
        return xt.convolution(op.operands[0], turned, **(vars(a) | {"filter": "OHWI"}))
    if len(a.rhs_contract) != 1:
        return None
    operands, changed = list(op.operands), vars(a).copy()
    for n in _across(op):
        if may[n]:
            side, rank = ("lhs", "rhs")[n], len(xt.shape_of(operands[n]))
            k = changed[f"{side}_contract"][0]
            perm = (*(d for d in range(rank) if d != k), k)
            operands[n] = xt.transpose(operands[n], perm=perm)
            changed |= {f"{side}_contract": (rank - 1,),
                        f"{side}_batch": tuple(perm.index(d) for d in changed[f"{side}_batch"])}
    return None if operands == list(op.operands) else xt.dot_general(*operands, **changed)


def _across(op: Operation) -> list[int]:
    """The numbers of a dot_general's operands that do not lie along the one dim that it sums over."""
    a = xt.attrs_of(op)
    return [n for n, (v, dims) in enumerate(zip(op.operands, (a.lhs_contract, a.rhs_contract), strict=True))
            if len(dims) == 1 and dims[0] != len(xt.shape_of(v)) - 1]


def _saves(op: Operation, chip: Chip) -> bool:
    """Whether a dot_general by wgmma and the copies for it take less time than one by warps' instructions."""
    a = xt.attrs_of(op)
    sizes = [nominal_count(xt.shape_of(v), {}) for v in (*op.operands, op.results[0])]
    batch = nominal_count(tuple(xt.shape_of(op.operands[0])[d] for d in a.lhs_batch), {})
    terms = nominal_count(tuple(xt.shape_of(op.operands[0])[d] for d in a.lhs_contract), {})
    if terms < LEAST or any(size < LEAST * terms * batch for size in sizes[:2]):
        return False
    operations, rate = 2.0 * sizes[2] * terms, dict(chip.flops).get(ROUNDED, math.inf)
    copies = sum(0.0 if is_constant(op.operands[n]) else 2 * 4 * sizes[n] / (COPIED * chip.bandwidth) + LAUNCH_SECONDS
                 for n in _across(op))
    return operations / rate * (1 / SHARES[0] - 1 / SHARES[1]) > copies

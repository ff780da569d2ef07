"""Products of 16-bit floats on CPUs, by multiplications of f32: what they broadcast is widened once, ahead.

    %y = xt.dot_general(%x, %w)            %y = xt.dot_general(xt.convert(%x), %w)
    : f16, f16 -> f16                  ->  : f32, f16 -> f16

The elements of the first operand are broadcast one by one, and a conversion takes as long for one as for a vector. The
second one's are widened in registers, a vector at a time: weights are read in 16 bits. So are computed second operands
for few rows, also where the CPU multiplies their type: it would take them in groups, in which they do not lie. Of a
matrix times a computed vector the vector is widened.
Weights for many rows are decoded like narrower ones, a panel at a time (`decode-panels`).
"""

from __future__ import annotations

from xcc._mlir import Module, Operation
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import at, name_of, producer, products
from xcc.passes.xt.products.panels import FILLED, multiplies
from xcc.passes.xt.products.product_sides import MANY_ROWS
from xcc.symbolic import Dim
from xcc.targets.base import Chip

NARROW = ("f16", "bf16")


@register_pass
class WidenProducts(Pass):
    """Widens the first operand of products of a 16-bit float that the chip does not multiply, or not fast."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in products(module):
            kind = xt.TensorType.of(op.operands[0]).dtype
            if kind in NARROW and not (ctx.chip is not None and multiplies(ctx.chip, kind) and _in_groups(op)):
                with at(op):
                    side = int(_of_vector(op))
                    op.operands[side] = xt.convert(op.operands[side], dtype="f32")
                    if ctx.chip is not None and _in_panels(op, ctx.chip):
                        op.operands[1] = xt.convert(op.operands[1], dtype="f32")


def _in_groups(op: Operation) -> bool:
    """Whether the second operand is brought into groups: ahead, or for enough rows. No filter of groups of channels is,
    nor one whose channels are not known; where each group has one channel, though, vectors go along both operands."""
    if name_of(op) != "dot_general":
        a, shape = xt.attrs_of(op), xt.shape_of(op.results[0])
        known = all(isinstance(d, int) for d in xt.shape_of(op.operands[1]))
        return a.groups == 1 and known or a.groups == shape[1 if a.layout == "NCHW" else -1] != 1
    return producer(op.operands[1], "weight") is not None or _many(_free(op, 0)) and not _of_vector(op)


def _of_vector(op: Operation) -> bool:
    """Whether the second operand is a computed vector and the first one is none: each element of that is read once."""
    return name_of(op) == "dot_general" and producer(op.operands[1], "weight") is None \
        and all(d == 1 for d in _free(op, 1)) and any(d != 1 for d in _free(op, 0))


def _free(op: Operation, side: int) -> tuple[Dim, ...]:
    """The dims of an operand of a product that are the result's alone."""
    a, dims = xt.attrs_of(op), xt.shape_of(op.operands[side])
    own = (*a.rhs_batch, *a.rhs_contract) if side else (*a.lhs_batch, *a.lhs_contract)
    return tuple(d for n, d in enumerate(dims) if n not in own)


def _in_panels(op: Operation, chip: Chip) -> bool:
    """Whether the second operand is a weight that many rows are multiplied with, of a product in panels."""
    *rows, columns = xt.shape_of(op.results[0])
    whole = isinstance(columns, int) and -columns % (chip.vector_bytes // 4) * FILLED < columns
    return producer(op.operands[1], "weight") is not None and (whole or name_of(op) != "dot_general") \
        and _many(tuple(rows))


def _many(rows: tuple[Dim, ...]) -> bool:
    return nominal_count(rows, {}) >= MANY_ROWS

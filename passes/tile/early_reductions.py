"""early-reductions: on CPUs, reductions of tiles go ahead of stores that they need not wait for.

    %t = vector.transfer_read %x[%i, %k]
    vector.transfer_write %u, %y[%i, %k]
    %s = vector.multi_reduction <add>, %t, %zero [1]
    ->
    %t = vector.transfer_read %x[%i, %k]
    %s = vector.multi_reduction <add>, %t, %zero [1]
    vector.transfer_write %u, %y[%i, %k]

Block values are what memory held when they were read. What is needed behind a store that may change it is kept on the
stack by `retile`; what is reduced ahead of the store need not be. Left out, such tiles are copied.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.choice import writes
from xcc.passes.walk import ops_where


@register_pass
class EarlyReductions(Pass):
    """Moves reductions ahead of stores."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in module.body.operations:
            if func.operation.name == "func.func" and BLOCKS in func.attributes:
                for reduction in ops_where(func, lambda op: op.name == "vector.multi_reduction"):
                    _move(reduction)


def _move(reduction: Operation) -> None:
    """Ahead of the first store behind all that the reduction is made of."""
    order: list[Operation] = [o.operation for o in reduction.block.operations]
    at = order.index(reduction)
    made = max((order.index(v.owner.operation) for v in reduction.operands
                if not isinstance(v.owner, ir.Block) and v.owner.operation.block == reduction.block), default=-1)
    store = next((o for o in order[made + 1:at] if writes(o)), None)
    if store is not None:
        reduction.move_before(store)

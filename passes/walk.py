"""Finding operations: passes collect what they rewrite before they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Block, Module, Operation, WalkResult, ir


def ops_where(root: Module | Operation, wanted: Callable[[Any], bool], outer_first: bool = False) -> list[Operation]:
    """The operations at and below `root` that are `wanted`, in order; what is inside an operation comes before it, or
    behind it with `outer_first`."""
    found: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER if outer_first else ir.WalkOrder.POST_ORDER)
    return found


def walk(block: Block) -> list[Operation]:
    """All operations under `block`, outer before inner, in order."""
    out: list[Operation] = []
    for op in block.operations:
        out.append(op.operation)
        for region in op.operation.regions:
            for inner in region.blocks:
                out += walk(inner)
    return out

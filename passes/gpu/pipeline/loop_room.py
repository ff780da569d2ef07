"""How much shared memory the operations of a loop need beside the tiles that the loop keeps there."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, ir
from xcc.passes.gpu.exchange.lane_exchange import lane_exchange
from xcc.passes.gpu.exchange.shared_memory import TURNS_BYTES
from xcc.passes.gpu.layout.registers import memory_type
from xcc.passes.gpu.layout.tile_ops import CONVERT, element_bytes, shape_of
from xcc.passes.shared.values import is_vector
from xcc.passes.walk import walk

if TYPE_CHECKING:
    from xcc.passes.gpu.layout.tile_kernel import TileKernel

ALIGNMENT = 16


def exchange_bytes(size: int) -> int:
    """What a conversion of a tile of `size` bytes asks for: a larger one is exchanged in pieces."""
    return min(size, TURNS_BYTES)


def room_inside(k: TileKernel, block: Block, staged: Container[Any]) -> int:
    """Bytes for the operations of `block`, where the operands of contractions in `staged` are there already."""
    return max((_needed(k, op, staged) for op in walk(block)), default=0)


def _needed(k: TileKernel, op: Operation, staged: Container[Any]) -> int:
    if op.name == CONVERT and is_vector(op.results[0]) and op.results[0] not in staged:
        source, target = k.layout(op.operands[0]), k.layout(op.results[0])
        return 0 if lane_exchange(source, target) is not None else exchange_bytes(_bytes(op.results[0]))
    if op.name == "vector.multi_reduction":
        dims = [int(d) for d in op.attributes["reduction_dims"]]
        warps = sum(any(v[d] for d in dims) for v in k.layout(op.operands[0]).basis("warp"))
        return exchange_bytes(_bytes(op.operands[1]) << warps) if warps else 0
    if op.name == "vector.contract":
        plan = k.product(op)
        own = [v for v, layout in zip(list(op.operands)[:2], (plan.lhs, plan.rhs), strict=True)
               if layout is None and v not in staged]
        return sum(-(-_bytes(v) // ALIGNMENT) * ALIGNMENT for v in own)
    return 0


def _bytes(value: Value) -> int:
    """Of all elements of a tile in shared memory."""
    if not is_vector(value):
        return 8
    return math.prod(shape_of(value)) * element_bytes(memory_type(ir.VectorType(value.type).element_type))

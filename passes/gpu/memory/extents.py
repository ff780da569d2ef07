"""How far the operands of a product have elements: tiles are powers of two, masks say what of them is there."""

from __future__ import annotations

from xcc._mlir import Block, Operation, Value, ir, maker, parent_op
from xcc.passes.gpu.index.upper_bounds import largest
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.tile_ops import CONVERT, yielded
from xcc.passes.gpu.memory.access import map_dims
from xcc.passes.shared.patterns import splat_of

MASKS = ("vector.create_mask", "vector.constant_mask")


def extent(op: Operation, plan: Contraction, operand: int, d: int) -> int:
    """The positions along iteration dim `d` for which an operand of the contraction `op` has elements, as the mask says
    that it is read with, where it is 0 past them."""
    read = maker(_uncast(op.operands[operand]), "vector.transfer_read")
    mask = maker(read.operands[len(read.operands) - 1]) if read is not None else None
    dims = map_dims(read) if read is not None else []
    side = plan.maps[operand].index(d)
    if read is None or mask is None or mask.name not in MASKS or dims[side] < 0 \
            or splat_of(read.operands[len(read.operands) - 2]) != 0:
        return plan.sizes[d]
    number = sorted(n for n in dims if n >= 0).index(dims[side])
    bound = list(mask.attributes["mask_dim_sizes"])[number] if mask.name == "vector.constant_mask" \
        else largest(mask.operands[number], {})
    return plan.sizes[d] if bound is None else min(plan.sizes[d], bound)


def summed(op: Operation, plan: Contraction) -> int:
    """The terms, whole steps of the instruction, past which both operands are 0: features of attention that are no
    power of two, say."""
    assert plan.instruction is not None
    step = plan.instruction.k
    return -(-max(1, *(extent(op, plan, n, plan.k[0]) for n in (0, 1))) // step) * step


def only_sums(op: Operation) -> bool:
    """Whether the accumulators of the contraction `op` are what it summed up itself in a loop that began with zeros,
    but for factors: they are 0 where an operand is."""
    value = op.operands[2]
    while (made := maker(value, "arith.mulf")) is not None:
        inner = next((v for v in made.operands if isinstance(_uncast(v).owner, Block) or maker(v, "arith.mulf")), None)
        if inner is None:
            return False
        value = inner
    value = _uncast(value)
    if not isinstance(value.owner, Block) or parent_op(value).name != "scf.for":
        return False
    loop, n = parent_op(value), ir.BlockArgument(value).arg_number - 1
    return n >= 0 and splat_of(_uncast(loop.operands[3 + n])) == 0 and _uncast(yielded(loop, n)) == op.results[0]


def _uncast(value: Value) -> Value:
    """What `value` is in its first layout."""
    while (cast := maker(value, CONVERT)) is not None:
        value = cast.operands[0]
    return value

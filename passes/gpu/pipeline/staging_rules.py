"""What a loop's operands must be like to be loaded ahead, and its products to run on: passes decide by it, and what
a user wrote is checked by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Type, Value, ir, maker
from xcc.passes.gpu.index.index_vectors import gather_run
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.staged_tile import ASYNC, ONCE, StagedTile
from xcc.passes.gpu.layout.tile_ops import CONVERT, element_bytes, step_of
from xcc.passes.gpu.memory.access import Access
from xcc.passes.gpu.memory.gathers import Gather
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.gpu.pipeline.loop_room import room_inside
from xcc.passes.walk import walk

if TYPE_CHECKING:
    from xcc.passes.gpu.layout.tile_kernel import TileKernel
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

PURE = ("arith.", "math.", "affine.apply", "vector.broadcast", "vector.transpose", "vector.step", "vector.shape_cast",
        "vector.create_mask", "vector.constant_mask", "vector.extract", "memref.reinterpret_cast")
LOADS = ("vector.transfer_read", "vector.gather", "memref.load")


def products(loop: Operation) -> list[Operation]:
    """The contractions of a loop's body."""
    return [op.operation for op in loop.regions[0].blocks[0].operations if op.operation.name == "vector.contract"]


def loads_of_step(value: Value, block: Block) -> list[Operation] | None:
    """The operations of a loop's `block` that load `value`; None where they depend on what the loop carries."""
    steps = step_of(value, block, lambda op: op.name.startswith((*PURE, *LOADS)) and not len(op.regions))
    return steps if steps is not None and any(s.name in LOADS for s in steps) else None


def may_be_async(k: TileKernel | KernelBuilder, value: Value, memory: Layout, stored: Type) -> bool:
    """Whether a tile is one transfer or gather whose accesses have the form of asynchronous copies to `memory`."""
    op, layout = maker(value), k.layout(value)
    if op is None or not k.chip.has_async_copies or stored != ir.VectorType(value.type).element_type:
        return False
    if op.name == "vector.gather":
        return _gather_may(k, op, layout, memory, element_bytes(stored))
    if op.name != "vector.transfer_read":
        return False
    access = Access(op, k.chip.vector_bytes)
    width, run = access.run(layout)
    if width * access.bytes not in (4, 8, 16) or memory.compose(layout).contiguous(width) != (width, run):
        return False
    segments = list(op.attributes["operandSegmentSizes"])
    if not segments[-1]:
        return True
    padding = maker(op.operands[1 + len(access.sizes)], "arith.constant")
    if padding is None:
        return False
    zero = padding.attributes["value"].value == 0
    return bool(zero) and Transfer.uniform_mask(op, width)


def _gather_may(k: Any, op: Operation, layout: Layout, memory: Layout, size: int) -> bool:
    """Whether a gather reads whole runs, zeros where its mask is off."""
    width, run = layout.contiguous(gather_run(op, k.chip.vector_bytes))
    if width * size not in (4, 8, 16) or memory.compose(layout).contiguous(width) != (width, run):
        return False
    other = maker(op.operands[len(op.operands) - 1], "arith.constant")
    if other is None or not Gather.uniform_mask(op, width):
        return False
    fixed = ir.DenseElementsAttr(other.attributes["value"])
    return bool(fixed.is_splat and fixed.get_splat_value().value == 0)


def add_on(k: TileKernel | KernelBuilder, loop: Operation, tiles: list[StagedTile]) -> bool:
    """Whether all contractions of a loop are of warpgroups, read `tiles` in shared memory, which are all they have, and
    only add to what the loop carries."""
    contractions = products(loop)
    return len(tiles) == 2 * len(contractions) and all(k.product(op).from_shared and _adds(op) for op in contractions)


def take_turns(k: TileKernel | KernelBuilder, loop: Operation, tiles: list[StagedTile]) -> bool:
    """Whether two warpgroups may take turns in a loop: it has two contractions of theirs, one on what the other gave,
    `tiles` are copied asynchronously, and nothing else in it goes through shared memory or waits for all threads."""
    contractions, block = products(loop), loop.regions[0].blocks[0]
    if len(contractions) != 2 or k.threads != 2 * k.chip.warp * 4 or not all(k.product(op).from_shared
                                                                            for op in contractions):
        return False
    if k.product(contractions[1]).lhs is None or any(t.load not in (ASYNC, ONCE) for t in tiles):
        return False
    return not room_inside(k, block, {v for op in contractions for v in list(op.operands)[:2]}) \
        and not any(op.name in ("gpu.barrier", "scf.for", "scf.while") for op in walk(block))


def adds_alone(loop: Operation, copied: int) -> bool:
    """Whether a step of a loop changes nothing where its `copied` tiles are zeros: these are all operands of its
    contractions, to whose sums, all that it carries, they are added; nothing else is written."""
    block, contractions = loop.regions[0].blocks[0], products(loop)
    names = (*PURE, *LOADS, CONVERT, "vector.contract", "scf.yield")
    return copied == 2 * len(contractions) and len(loop.results) == len(contractions) \
        and all(map(_adds, contractions)) \
        and all(op.operation.name.startswith(names) and not len(op.operation.regions) for op in block.operations)


def _adds(contraction: Operation) -> bool:
    """Whether a contraction of a loop's body only adds to what the loop carries."""
    block, carried = contraction.block, contraction.operands[2]
    if not isinstance(carried.owner, ir.Block) or carried.owner != block:
        return False
    uses = [(u.owner.operation, u.operand_number) for v in (carried, contraction.results[0]) for u in v.uses]
    last = list(block.operations)[-1].operation
    return uses == [(contraction, 2), (last, ir.BlockArgument(carried).arg_number - 1)]

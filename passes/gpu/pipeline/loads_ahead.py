"""Which tiles a loop loads ahead of its contractions, where they lie in shared memory, and how they get there.

A tile is what one operand of a contraction is in a step, if it depends on nothing that the loop carries. It is copied
asynchronously where its one transfer or gather has the form of such copies, else it goes through registers; its memory
layout is the one that the contraction reads best. `pipeline_loads` emits the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc._mlir import ir
from xcc.passes.gpu.exchange.shared_layout import best_memory
from xcc.passes.gpu.index.index_vectors import gather_run
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.operand_memory import operand_memory
from xcc.passes.gpu.layout.registers import memory_type
from xcc.passes.gpu.layout.staged_tile import StagedTile
from xcc.passes.gpu.layout.tile_ops import CONVERT, element_bytes, owner, step_of, words
from xcc.passes.gpu.memory.access import Access, register_run
from xcc.passes.gpu.memory.gathers import Gather
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.gpu.pipeline.loop_room import room_inside
from xcc.passes.gpu.vendor import warpgroup

__all__ = ["LOADS", "LoadsAhead", "loads_ahead"]

PURE = ("arith.", "math.", "affine.apply", "vector.broadcast", "vector.transpose", "vector.step", "vector.shape_cast",
        "vector.create_mask", "vector.constant_mask", "vector.extract", "memref.reinterpret_cast")
LOADS = ("vector.transfer_read", "vector.gather", "memref.load")
OTHER_REGISTERS = 56    # of addresses, masks, operands of one step of a product


@dataclass(frozen=True)
class LoadsAhead:
    """What a loop keeps in shared memory.

    Attributes:
        staged: (the operand of a contraction that is replaced, its tile).
        running: 1 where the contractions of a step run on during the next one: slots are free a step later.
        fenced: contractions read shared memory by themselves, behind a fence of what threads stored there.
    """

    staged: list[tuple[Any, StagedTile]]
    running: int
    fenced: bool


def loads_ahead(k: Any, loop: Any) -> LoadsAhead | None:
    """The tiles that `loop` can load ahead; None where there are none, or no room."""
    block = loop.regions[0].blocks[0]
    if any(op.operation.name == "gpu.barrier" for op in block.operations):
        return None         # a turn reads what the turn before has written
    found: dict[Any, StagedTile] = {}
    contractions = [op.operation for op in block.operations if op.operation.name == "vector.contract"]
    plans = [Contraction(op, k.chip, k.threads // k.chip.warp) for op in contractions]
    for op, plan in zip(contractions, plans, strict=True):
        for i in (0, 1):
            operand = op.operands[i]
            tile = None if operand in found else _staged(k, plan, i, operand, block)
            if tile is not None:
                found[operand] = tile
    if found:
        found.update(_kept(k, block))
    out = list(found.items())
    if not out:
        return None
    groups = all(p.from_shared for p in plans)
    shared = any(p.from_shared for p in plans)
    runs_on = groups and len(found) == 2 * len(plans) and _runs_on(contractions, block)
    alignment = warpgroup.ALIGNMENT if shared else 16
    for spare in (1, 0) if runs_on else (0,):
        if _place(k, out, spare, alignment, room_inside(k, block, found)):
            return LoadsAhead(out, spare, shared)
    while len(out) > 1 and not shared:      # the largest tiles are loaded in their step
        largest = max(out, key=lambda entry: entry[1].slot_bytes)
        out.remove(largest)
        if _place(k, out, 0, alignment, room_inside(k, block, dict(out))):
            return LoadsAhead(out, 0, shared)
    return None


def _kept(k: Any, block: Any) -> dict[Any, StagedTile]:
    """Operands made before the loop that stay in shared memory: those that instructions read there, and others where
    all values together need too many registers."""
    contracts = [op for op in block.operations if op.operation.name == "vector.contract"]
    fixed = {v: (Contraction(op, k.chip, k.threads // k.chip.warp), i) for op in contracts
             for i, v in enumerate(list(op.operands)[:2]) if owner(v) is not None and owner(v).block != block}
    yielded = list(block.operations)[-1].operands
    carried = sum(_held(k, v) for v in yielded if isinstance(v.type, ir.VectorType))
    inside = max((_held(k, op.results[0]) for op in contracts if op.results[0] not in list(yielded)), default=0)
    most = min(k.chip.vector_registers, 256)        # that an instruction can name
    crowded = carried + inside + sum(_held(k, v) for v in fixed) + _step_words(k, contracts) >= most - OTHER_REGISTERS
    out: dict[Any, StagedTile] = {}
    for v, (plan, i) in fixed.items():
        convert = owner(v)
        wanted = (plan.lhs, plan.rhs)[i]
        if plan.from_shared and wanted is None:
            stored = memory_type(ir.VectorType(v.type).element_type)
            memory = warpgroup.matrix_memory(plan, i, k.layout(v), element_bytes(stored))
            out[v] = StagedTile(v, [], memory, False, stored, kept=True)
        elif crowded and plan.instruction is not None and wanted is not None and convert.name == CONVERT \
                and all(u.owner.operation.name == "vector.contract" for u in v.uses):
            source = convert.operands[0]
            stored = memory_type(ir.VectorType(source.type).element_type)
            matrix = k.code.loads_matrices(stored)
            memory = best_memory(k.layout(source), wanted, element_bytes(stored), matrix)
            out[v] = StagedTile(source, [], memory, False, stored, kept=True)
    return out


def _step_words(k: Any, contracts: list[Any]) -> int:
    """Registers of the right operands of one instruction's k, which LLVM reads together."""
    most = 0
    for op in contracts if k.chip.llvm_schedules else []:
        plan = Contraction(op, k.chip, k.threads // k.chip.warp)
        if plan.instruction is not None:
            most = max(most, _held(k, op.operands[1]) * plan.instruction.k // plan.sizes[plan.k[0]])
    return most


def _held(k: Any, value: Any) -> int:
    return words(k.layout(value), value)


def _staged(k: Any, plan: Contraction, number: int, operand: Any, block: Any) -> StagedTile | None:
    op = owner(operand)
    if op is None or op.block != block or any(u.owner.operation.name != "vector.contract" for u in operand.uses):
        return None
    value = operand
    if op.name == CONVERT:
        value = op.operands[0]
    elif (plan.lhs, plan.rhs)[number] is not None:
        return None
    steps = step_of(value, block, _loaded)
    if steps is None or not any(s.name in LOADS for s in steps):
        return None
    stored = memory_type(ir.VectorType(value.type).element_type)
    layout = k.layout(value)
    if plan.from_shared:
        memory = warpgroup.matrix_memory(plan, number, layout, element_bytes(stored))
    elif plan.instruction is None:
        memory = operand_memory(plan, number, layout, element_bytes(stored))
    else:
        matrix = k.code.loads_matrices(stored)
        memory = best_memory(layout, k.layout(operand), element_bytes(stored), matrix)
    return StagedTile(value, steps, memory, _direct(k, value, layout, memory, stored), stored)


def _loaded(op: Any) -> bool:
    """Whether an operation may be a part of what is loaded ahead."""
    return op.name.startswith((*PURE, *LOADS)) and not len(op.regions)


def _direct(k: Any, value: Any, layout: Layout, memory: Layout, stored: Any) -> bool:
    """Whether the tile is one transfer whose accesses have the form of asynchronous copies."""
    op = owner(value)
    if not k.code.async_copies or stored != ir.VectorType(value.type).element_type:
        return False
    if op.name == "vector.gather":
        return _direct_gather(k, op, layout, memory, element_bytes(stored))
    if op.name != "vector.transfer_read":
        return False
    access = Access(op, k.chip.vector_bytes)
    width, run = access.run(layout)
    if width * access.bytes not in (4, 8, 16) or memory.compose(layout).contiguous(width) != (width, run):
        return False
    segments = list(op.attributes["operandSegmentSizes"])
    if not segments[-1]:
        return True
    padding = owner(op.operands[1 + len(access.sizes)])
    if padding is None or padding.name != "arith.constant":
        return False
    attribute = padding.attributes["value"]
    zero = attribute.value == 0
    return bool(zero) and Transfer.uniform_mask(op, width)


def _direct_gather(k: Any, op: Any, layout: Layout, memory: Layout, size: int) -> bool:
    """Whether a gather reads whole runs, zeros where its mask is off."""
    width, run = register_run(layout, gather_run(op, k.chip.vector_bytes))
    if width * size not in (4, 8, 16) or memory.compose(layout).contiguous(width) != (width, run):
        return False
    other = owner(op.operands[len(op.operands) - 1])
    if other is None or other.name != "arith.constant" or not Gather.uniform_mask(op, width):
        return False
    fixed = ir.DenseElementsAttr(other.attributes["value"])
    return bool(fixed.is_splat and fixed.get_splat_value().value == 0)


def _place(k: Any, staged: list[tuple[Any, StagedTile]], spare: int, alignment: int, room: int) -> bool:
    """Gives every tile its slots in shared memory, `spare` more than the loads ahead need; fewer stages where the chip
    has less, False for fewer than two. room: bytes that the loop needs besides."""
    tiles = [t for _, t in staged]
    for stages in range(k.stages, 1 + spare, -1):
        end = k.shared.reserved
        for t in tiles:
            t.slots = stages if t.direct else 1 if t.kept else 2 + spare
            t.offset = end = -(-end // alignment) * alignment
            end += -(-t.slots * t.slot_bytes // 16) * 16
        if end + room <= k.chip.shared_bytes:
            return True
    return False


def _runs_on(contractions: list[Any], block: Any) -> bool:
    """Whether all contractions of a loop are of warpgroups and only add to what the loop carries."""
    last = list(block.operations)[-1]
    for op in contractions:
        carried = op.operands[2]
        uses = [(u.owner.operation, u.operand_number) for v in (carried, op.results[0]) for u in v.uses]
        if not isinstance(carried.owner, ir.Block) or carried.owner != block:
            return False
        number = ir.BlockArgument(carried).arg_number - 1
        if uses != [(op, 2), (last.operation, number)]:
            return False
    return True

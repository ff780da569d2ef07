"""Which operands of a loop's contractions lie in shared memory, and in which order there.

    scf.for ... { %a = vector.transfer_read ...
                  %f = builtin.unrealized_conversion_cast %a
                  vector.contract ... %f, ... }
    ->
    scf.for ... { ...
                  vector.contract {xcc.staged = [{memory = "tile=[2048] dim0=..."}, {}]} ... %f, ... }

An operand that a step loads, if it depends on nothing that the loop carries, lies there as the contraction reads it
best: as its instruction wants it, or in the swizzle for which writes and reads take the fewest cycles. So does one that
is made before the loop, where instructions read it there, or registers are short. Dropped, or without the attribute, an
operand is held in registers, and goes through shared memory anew in each step where the contraction reads it there.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Block, Module, Operation, Value, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.exchange.shared_layout import best_memory
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.operand_memory import operand_memory
from xcc.passes.gpu.layout.registers import memory_type
from xcc.passes.gpu.layout.staged_tile import StagedTile
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import CONVERT, config_int, element_bytes
from xcc.passes.gpu.pipeline.loads_ahead import write_staged
from xcc.passes.gpu.pipeline.staging_rules import loads_of_step, products
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.gpu.vendor.ldmatrix import loads_matrices

OTHER_REGISTERS = 56    # of addresses, masks, operands of one step of a product
NAMED = 256             # registers that an instruction can name


@register_pass
class StageOperands(Pass):
    """Chooses the operands of products that loops keep in shared memory, and their layouts there."""

    kept: bool = True           # also those made before the loop

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in k.ops("scf.for") if config_int(k.func, "stages", 0) > 1 else []:
                write_staged(loop, list(_operands(k, loop, self.kept).items()))


def _operands(k: TileKernel, loop: Operation, kept: bool) -> dict[Value, StagedTile]:
    """The operands that `loop` can keep in shared memory; none in a loop with barriers, of which a turn reads what the
    turn before has written."""
    block = loop.regions[0].blocks[0]
    found: dict[Value, StagedTile] = {}
    if any(op.operation.name == "gpu.barrier" for op in block.operations):
        return found
    for op in products(loop):
        for i in (0, 1):
            operand = op.operands[i]
            tile = None if operand in found else _loaded(k, op, i, block)
            if tile is not None:
                found[operand] = tile
    return {**found, **_kept(k, loop)} if found and kept else found


def _loaded(k: TileKernel, contraction: Operation, number: int, block: Block) -> StagedTile | None:
    """An operand that the steps of the loop load."""
    plan, operand = k.product(contraction), contraction.operands[number]
    op, wanted = maker(operand), (plan.lhs, plan.rhs)[number]
    if op is None or op.block != block or any(u.owner.operation.name != "vector.contract" for u in operand.uses):
        return None
    if op.name != CONVERT and wanted is not None:
        return None
    value = op.operands[0] if op.name == CONVERT else operand
    steps = loads_of_step(value, block)
    if steps is None:
        return None
    stored = memory_type(ir.VectorType(value.type).element_type)
    layout, size = k.layout(value), element_bytes(stored)
    if plan.from_shared:
        memory = warpgroup.matrix_memory(plan, number, layout, size)
    elif plan.instruction is None:
        memory = operand_memory(plan, number, layout, size)
    else:
        memory = best_memory(layout, k.layout(operand), size, loads_matrices(k.chip, stored))
    return StagedTile(value, steps, memory, stored)


def _kept(k: TileKernel, loop: Operation) -> dict[Value, StagedTile]:
    """Operands made before the loop that stay in shared memory: those that instructions read there, and others where
    all values together need too many registers."""
    out: dict[Any, StagedTile] = {}
    fixed = _fixed(loop)
    crowded = _crowded(k, loop, list(fixed))
    for v, (op, number) in fixed.items():
        plan, convert = k.product(op), maker(v)
        wanted: Layout | None = (plan.lhs, plan.rhs)[number]
        if plan.from_shared and wanted is None:
            stored = memory_type(ir.VectorType(v.type).element_type)
            memory = warpgroup.matrix_memory(plan, number, k.layout(v), element_bytes(stored))
            out[v] = StagedTile(v, [], memory, stored)
        elif crowded and plan.instruction is not None and wanted is not None and convert is not None \
                and convert.name == CONVERT \
                and all(u.owner.operation.name == "vector.contract" for u in v.uses):
            source = convert.operands[0]
            stored = memory_type(ir.VectorType(source.type).element_type)
            memory = best_memory(k.layout(source), wanted, element_bytes(stored), loads_matrices(k.chip, stored))
            out[v] = StagedTile(source, [], memory, stored)
    return out


def _fixed(loop: Operation) -> dict[Value, tuple[Operation, int]]:
    """The operands that are made outside the loop's body: the contraction, and which of its operands they are."""
    block = loop.regions[0].blocks[0]
    return {v: (op, i) for op in products(loop) for i, v in enumerate(list(op.operands)[:2])
            if (origin := maker(v)) is not None and origin.block != block}


def _crowded(k: TileKernel, loop: Operation, fixed: list[Value]) -> bool:
    """Whether what the loop carries, a product that it does not, and the operands `fixed` leave too few registers."""
    contracts = products(loop)
    yielded = list(list(loop.regions[0].blocks[0].operations)[-1].operands)
    carried = sum(k.words(v) for v in yielded if isinstance(v.type, ir.VectorType))
    inside = max((k.words(op.results[0]) for op in contracts if op.results[0] not in yielded), default=0)
    most = min(k.chip.vector_registers, NAMED)
    return bool(carried + inside + sum(k.words(v) for v in fixed) + _step_words(k, contracts) >= most - OTHER_REGISTERS)


def _step_words(k: TileKernel, contracts: list[Operation]) -> int:
    """Registers of the right operands of one instruction's k, which LLVM reads together."""
    most = 0
    for op in contracts if k.chip.llvm_schedules else []:
        plan = k.product(op)
        if plan.instruction is not None:
            most = max(most, k.words(op.operands[1]) * plan.instruction.k // plan.sizes[plan.k[0]])
    return most

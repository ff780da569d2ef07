"""Where in shared memory the tiles are that loops keep there: slots, and the bytes at which they begin.

    vector.contract {xcc.staged = [{load = "async", memory = "..."}, ...]} ...
    ->
    vector.contract {xcc.staged = [{load = "async", memory = "...", offset = 0, slots = 4}, ...]} ...

A tile that is copied asynchronously has a slot for each stage of its loop, one that goes through registers two, or
three where the products of a step run on during the next (``xcc.in_flight``), one that is the same in all steps one.
Where the chip has too little shared memory, beside what the loop's conversions need, there are fewer stages, then
nothing runs on, then the largest tiles are loaded in their step, then the loop is not pipelined. Dropped, none is.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Module, Operation, Value
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.staged_tile import ASYNC, ONCE, StagedTile
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import int_attribute
from xcc.passes.gpu.pipeline.loads_ahead import IN_FLIGHT, STAGES, forget, staged_tiles, write_staged
from xcc.passes.gpu.pipeline.loop_room import room_inside
from xcc.passes.gpu.pipeline.staging_rules import products
from xcc.passes.gpu.vendor import warpgroup


@register_pass
class PlanSharedMemory(Pass):
    """Gives the tiles that pipelined loops keep in shared memory their slots there."""

    bytes: int = 0              # that a workgroup may use; 0: all that the chip has

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            ends: dict[Operation, int] = {}       # of the tiles of loops around others
            for loop in k.ops("scf.for"):
                if STAGES in loop.attributes:
                    ends[loop] = _plan(k, loop, _taken(loop, ends), self.bytes or ctx.chip.shared_bytes)


def _taken(loop: Operation, ends: dict[Any, int]) -> int:
    """The bytes that the loops around `loop` keep their tiles in."""
    around = loop.parent.operation
    while around.name != "func.func":
        if ends.get(around):
            return ends[around]
        around = around.parent.operation
    return 0


def _plan(k: TileKernel, loop: Operation, first: int, limit: int) -> int:
    """Places the tiles of `loop` from byte `first` on, or takes away what is said of them; the byte behind them."""
    block, staged = loop.regions[0].blocks[0], staged_tiles(k, loop)
    shared = any(k.product(op).from_shared for op in products(loop))
    alignment = warpgroup.ALIGNMENT if shared else 16
    spare, stages = int_attribute(loop, IN_FLIGHT), int_attribute(loop, STAGES)
    while staged:
        room = first, alignment, limit - room_inside(k, block, dict(staged))
        running = next((n for n in range(spare, -1, -1) if _place(staged, range(stages, 1 + n, -1), n, room)), None)
        if running is not None:
            if spare and not running:
                del loop.attributes[IN_FLIGHT]
            write_staged(loop, staged)
            return max(t.end for _, t in staged)
        if shared or len(staged) == 1:
            break
        staged.remove(max(staged, key=lambda entry: entry[1].slot_bytes))
    forget(loop)
    return 0


def _place(staged: list[tuple[Value, StagedTile]], stages: range, spare: int, room: tuple[int, int, int]) -> bool:
    """Gives every tile its slots with as many of `stages` as fit into `room` (first byte, alignment, end)."""
    first, alignment, limit = room
    for count in stages:
        end = first
        for _, t in staged:
            t.slots = count if t.load == ASYNC else 1 if t.load == ONCE else 2 + spare
            t.offset = -(-end // alignment) * alignment
            end = t.end
        if end <= limit:
            return True
    return False

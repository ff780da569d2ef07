"""Persistent kernels: workgroups that compute one tile after the other (``persistent`` in ``xcc.config``).

    copies of the first steps of the first tile
    scf.for %t = block id to tiles step workgroups iter_args(%slot = 0) {
      steps of tile %t; during the last ones the copies of the first steps of tile %t + workgroups
      epilogue }

Shared memory fills up again while a tile's epilogue is computed and stored, and no workgroup is started for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import arith_d, gpu_d, ir, scf_d
from xcc.passes.gpu.exchange.lane_exchange import lane_exchange
from xcc.passes.gpu.exchange.shared_memory import ANYTHING
from xcc.passes.gpu.layout.registers import index
from xcc.passes.gpu.layout.staged_tile import ASYNC
from xcc.passes.gpu.layout.tile_ops import CONVERT, constant, element_bytes, is_vector, owner
from xcc.passes.gpu.pipeline.pipelined_loop import PipelinedLoop
from xcc.passes.gpu.pipeline.staging_rules import PURE

__all__ = ["Rounds"]


class Rounds:
    """The tiles of one workgroup. `loop` is their loop over k, `slot` where in shared memory a tile's first step is."""

    def __init__(self, k: Any, body: Any, place: Callable[[Any], None], loop: PipelinedLoop, outer: list[Any]) -> None:
        self.k, self.body, self.place, self.loop, self.outer = k, body, place, loop, outer
        self.count: Any = None
        self.workers = 0
        self.slot: Any = None
        self.following: tuple[Any, Any] | None = None   # the next tile, and whether there is one
        self.next: dict[Any, Any] | None = None         # the values that the copies of the next tile start from

    @staticmethod
    def of(k: Any, body: Any, place: Callable[[Any], None], count: Any, workers: int) -> Rounds | None:
        """The rounds of `workers` workgroups over `count` tiles; None where the body has no loop that allows them."""
        loops = [op.operation for op in body.operations if op.operation.name == "scf.for"]
        if len(loops) != 1:
            return None
        plan = k.plan_of(loops[0])
        bounds = [constant(v) for v in list(loops[0].operands)[:3]]
        if plan is None or not plan.running or not all(t.load == ASYNC for _, t in plan.staged) or None in bounds:
            return None
        low, high, step = (n or 0 for n in bounds)
        loop = PipelinedLoop(k, loops[0], plan)
        outer = _needed(body, loop)
        if outer is None or (high - low) % step or (high - low) // step < loop.tiles.slots or not _fits(k, body, loop):
            return None
        found = Rounds(k, body, place, loop, outer)
        found.count, found.workers = count, workers
        return found

    def emit(self) -> None:
        k, loop = self.k, self.loop
        loop.tiles.prepare()
        loop.tiles.endless = True
        number = gpu_d.block_id(gpu_d.Dimension.x)
        low, _, step = loop.steps.numbers
        self.place(number)
        for n in range(loop.tiles.ahead):
            self._copy(dict(k.values), loop, index(low + n * step), index(n), None)
        rounds = scf_d.ForOp(number, self.count, index(self.workers), [index(0)])
        with ir.InsertionPoint(rounds.body):
            tile, self.slot = rounds.body.arguments
            self.place(tile)
            after = arith_d.addi(tile, index(self.workers))
            more = arith_d.cmpi(arith_d.CmpIPredicate.ult, after, self.count)
            self.following = arith_d.select(more, after, tile), more
            k.shared.reads = ANYTHING
            k.block(self.body)
            k.finish()
            scf_d.yield_([self.slot])
        loop.tiles.wait(0)

    def copy_next(self, loop: PipelinedLoop, iv: Any, slot: Any) -> None:
        """Starts the copies of step `iv` of the next tile."""
        assert self.following is not None
        tile, more = self.following
        if self.next is None:
            saved = dict(self.k.values)
            self.place(tile)
            for op in self.outer:
                self.k.emit(op)
            self.next, self.k.values = self.k.values, saved
        self._copy(dict(self.next), loop, iv, slot, more)

    def _copy(self, values: dict[Any, Any], loop: PipelinedLoop, iv: Any, slot: Any, test: Any) -> None:
        saved, self.k.values = self.k.values, values
        if self.next is None:
            for op in self.outer:
                self.k.emit(op)
        loop.tiles.copy(iv, slot, test)
        self.k.values = saved


def _needed(body: Any, loop: PipelinedLoop) -> list[Any] | None:
    """The operations of `body` that the loop's copies start from; None where some must not be done twice."""
    wanted: set[Any] = set()
    todo = [v for _, t in loop.plan.staged for op in t.slice for v in op.operands]
    while todo:
        op = owner(todo.pop())
        if op is None or op.block != body or op in wanted:
            continue
        if not op.name.startswith(PURE) or len(op.regions):
            return None
        wanted.add(op)
        todo += list(op.operands)
    return [op.operation for op in body.operations if op.operation in wanted]


def _fits(k: Any, body: Any, loop: PipelinedLoop) -> bool:
    """Whether conversions of the epilogue have room beside the loop's slots, or need none."""
    sizes = [0]
    for op in body.operations:
        if op.operation.name == CONVERT and is_vector(op.operation.results[0]):
            if lane_exchange(k.layout(op.operation.operands[0]), k.layout(op.operation.results[0])) is not None:
                continue
            kind = ir.VectorType(op.operation.results[0].type)
            count = 1
            for s in kind.shape:
                count *= s
            sizes.append(count * element_bytes(kind.element_type))
    return bool(loop.plan.end + max(sizes) + 4096 <= k.chip.shared_bytes)

"""The code of persistent kernels: workgroups that compute one tile after the other (`persistent-grid`).

    copies of the first steps of the first tile
    scf.for %t = block id to tiles step workgroups iter_args(%slot = 0) {
      steps of tile %t; during the last ones the copies of the first steps of tile %t + workgroups
      epilogue }

Shared memory fills up again while a tile's epilogue is computed and stored, and no workgroup is started for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, arith_d, gpu_d, ir, maker, scf_d
from xcc.diagnostics import UserError
from xcc.passes.gpu.exchange.lane_exchange import lane_exchange
from xcc.passes.gpu.exchange.shared_memory import ANYTHING, TURNS_BYTES
from xcc.passes.gpu.layout.tile_kernel import TileKernel
from xcc.passes.gpu.layout.tile_ops import CONVERT, element_bytes, int_attribute, shape_of
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.pipelined_loop import PipelinedLoop
from xcc.passes.gpu.pipeline.staging_rules import PURE, adds_alone
from xcc.passes.shared.values import index, is_vector

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

__all__ = ["DESCENDING", "GROUP", "PERSISTENT", "Rounds", "rounds_problem"]

GROUP = "xcc.group"         # on an scf.forall: tiles along the last dim but one that neighbouring workgroups take
DESCENDING = "xcc.descending"       # on an scf.forall: the dim whose last tiles come first
PERSISTENT = "xcc.persistent"       # on an scf.forall: how many workgroups compute all of its tiles


class Rounds:
    """The tiles of one workgroup. `loop` is their loop over k, `slot` where in shared memory a tile's first step is."""

    def __init__(self, k: KernelBuilder, forall: Operation, place: Callable[[Any], None], count: Value) -> None:
        problem = rounds_problem(k, forall)
        if problem:
            raise UserError(f"{forall.location}: {PERSISTENT} cannot be obeyed: {problem}")
        self.k, self.body, self.place, self.count = k, forall.regions[0].blocks[0], place, count
        [loop] = _loops(self.body)
        plan = k.plan_of(loop)
        assert plan is not None             # rounds_problem has looked
        self.loop = PipelinedLoop(k, loop, plan)
        outer = _needed(self.body, loop, self.loop.plan) or []
        self.moving = _moving(self.body, outer)         # what its copies start from, of each tile
        self.fixed = [op for op in outer if op not in self.moving]
        self.workers = int_attribute(forall, PERSISTENT)
        self.slot: Any = None
        self.following: tuple[Value, Value] | None = None   # the next tile, and whether there is one
        self.next: list[Value] | None = None              # the next tile's values of `carried`

    def emit(self) -> None:
        k, loop = self.k, self.loop
        loop.tiles.prepare()
        loop.tiles.endless = True
        number = gpu_d.block_id(gpu_d.Dimension.x)
        for op in self.fixed:
            k.emit(op)
        first = self._values(number)
        for n in range(loop.tiles.ahead):
            self._copy(first, n, index(n), None)
        rounds = scf_d.ForOp(number, self.count, index(self.workers), [index(0), *first])
        with ir.InsertionPoint(rounds.body):
            tile, self.slot, *current = rounds.body.arguments
            k.values.update(zip(self.carried, current, strict=True))
            after = arith_d.addi(tile, index(self.workers))
            self.following = after, arith_d.cmpi(arith_d.CmpIPredicate.ult, after, self.count)
            k.shared.reads = ANYTHING
            k.block(self.body, {*self.fixed, *self.moving})
            k.finish()
            assert self.next is not None
            scf_d.yield_([self.slot, *self.next])
        loop.tiles.wait(0)

    @property
    def carried(self) -> list[Value]:
        """The values that differ from tile to tile and are there before its code: coordinates, and what copies start
        from."""
        return [*self.body.arguments, *(r for op in self.moving for r in op.results)]

    def _values(self, number: Value) -> list[Value]:
        """Those of tile `number`, computed here."""
        saved = dict(self.k.values)
        self.place(number)
        for op in self.moving:
            self.k.emit(op)
        values, self.k.values = [self.k.values[v] for v in self.carried], saved
        return values

    def copy_next(self, step: int, slot: Value) -> None:
        """Starts the copies of a step of the next tile, whose values are computed where there is one."""
        assert self.following is not None
        after, more = self.following
        if self.next is None:
            current = [self.k.values[v] for v in self.carried]
            branch = scf_d.IfOp(more, [v.type for v in current], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf_d.yield_(self._values(after))
            with ir.InsertionPoint(branch.else_block):
                scf_d.yield_(current)
            self.next = list(branch.results)
        self._copy(self.next, step, slot, more)

    def _copy(self, values: list[Value], step: int, slot: Value, test: Value | None) -> None:
        """Starts the copies of a step of the tile of `values`, where `test` holds and there is such a step."""
        saved = self.k.values
        self.k.values = saved | dict(zip(self.carried, values, strict=True))
        steps = Steps(*[self.k.get(v) for v in list(self.loop.op.operands)[:3]])
        iv = steps.later(steps.lower, step)
        inside = steps.inside(iv)
        self.loop.tiles.copy(iv, slot, inside if test is None else test if inside is None else
                             arith_d.andi(test, inside))
        self.k.values = saved


def rounds_problem(k: TileKernel, forall: Operation) -> str:
    """Why a workgroup cannot compute several tiles of `forall`, one after the other; empty where it can."""
    body = forall.regions[0].blocks[0]
    loops = _loops(body)
    plan = LoadsAhead.of(k, loops[0]) if len(loops) == 1 else None
    if plan is None or not plan.running or len(plan.copied) < len(plan.staged):
        return "a tile has one loop, of asynchronous copies alone, whose products run on"
    count = Steps.of(loops[0]).count
    if count is not None and count < plan.slots or count is None and not adds_alone(loops[0], len(plan.copied)):
        return f"its loop has {plan.slots} steps at least, or a number that the run knows of products' sums alone"
    if _needed(body, loops[0], plan) is None:
        return "what its copies start from, and its number of steps, is computed by arithmetic alone"
    if plan.end + max(_exchanged(k, body), default=0) + TURNS_BYTES > k.chip.shared_bytes:
        return "what it exchanges between threads has no room in shared memory beside its slots"
    return ""


def _loops(body: Block) -> list[Operation]:
    return [op.operation for op in body.operations if op.operation.name == "scf.for"]


def _needed(body: Block, loop: Operation, plan: LoadsAhead) -> list[Any] | None:
    """The operations of `body` that the copies of `plan` and the steps of `loop` start from; None where some must not
    be done twice."""
    wanted: set[Any] = set()
    todo = [*list(loop.operands)[:3], *(v for _, t in plan.staged for op in t.slice for v in op.operands)]
    while todo:
        op = maker(todo.pop())
        if op is None or op.block != body or op in wanted:
            continue
        if not op.name.startswith(PURE) or len(op.regions):
            return None
        wanted.add(op)
        todo += list(op.operands)
    return [op.operation for op in body.operations if op.operation in wanted]


def _moving(body: Block, outer: list[Any]) -> list[Any]:
    """Those of `outer` that depend on the tile."""
    known: set[Value] = set(body.arguments)
    found = []
    for op in outer:
        if any(v in known for v in op.operands):
            known.update(op.results)
            found.append(op)
    return found


def _exchanged(k: TileKernel, body: Block) -> Iterator[int]:
    """Bytes of the tiles that the epilogue converts, but for those that shuffles do."""
    for op in body.operations:
        if op.operation.name == CONVERT and is_vector(op.operation.results[0]):
            value, result = op.operation.operands[0], op.operation.results[0]
            if lane_exchange(k.layout(value), k.layout(result)) is None:
                yield math.prod(shape_of(result)) * element_bytes(ir.VectorType(result.type).element_type)

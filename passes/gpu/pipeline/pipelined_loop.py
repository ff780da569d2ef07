"""Software pipelining: a loop loads the tiles of later steps while it computes on those that are in shared memory.

    for iv { %a = transfer_read; %f = convert %a to fragments; contract %f, ... }
    ->
    copies of the first stages - 1 steps
    for iv { wait for this step's copies; barrier; copies of step iv + (stages - 1); fragments from shared memory;
             contract }

A tile that is read by one transfer or gather in pieces of 4 to 16 bytes is copied asynchronously (cp.async) into one of
`stages` slots. Any other (elements apart, odd alignment, arithmetic before the contraction, chips without such copies)
goes through registers and two slots (double buffering): its loads start ahead of a step's instructions, and what they
gave is written to the other slot behind them. One barrier a step is enough for both: the slot that is written was read
in an earlier step, which all threads have left. Where contractions of warpgroups run on into the next step, a slot is
written one step later, and there is one more of each tile.
An operand that is the same in all steps is held in registers, or in shared memory where the registers are needed for
what the loop carries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir, scf_d
from xcc.diagnostics import UserError
from xcc.passes.gpu.exchange.shared_memory import ANYTHING
from xcc.passes.gpu.layout.tile_ops import int_attribute
from xcc.passes.gpu.pipeline.later_tiles import LaterTiles, nothing_known
from xcc.passes.gpu.pipeline.loads_ahead import PEELED, UNROLL, LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.whole_steps import WHOLE, WholeSteps
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.shared.values import index, is_vector

if TYPE_CHECKING:
    from xcc.passes.gpu.pipeline.rounds import Rounds
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder


class PipelinedLoop:
    """The loop `op` over `steps`, which loads the `tiles` of later ones."""

    def __init__(self, k: KernelBuilder, op: Operation, plan: LoadsAhead) -> None:
        self.k, self.op, self.plan = k, op, plan
        self.block = op.regions[0].blocks[0]
        self.steps = Steps.of(op)
        self.tiles = LaterTiles(k, self.block, plan, self.steps)
        self.apart = int_attribute(op, PEELED)      # how many of the last steps stand behind the loop
        self.whole = WholeSteps.of(op) if WHOLE in op.attributes and not plan.held else None
        self.is_last = False    # what is emitted is the last step: nothing is loaded for a step behind it

    def emit(self) -> None:
        k, code, shared, tiles, count = self.k, self.k.code, self.k.shared, self.tiles, self.steps.count
        outer = shared.reserved
        counters = self.begin()
        early = self.loads_to_start()
        tiles.endless = bool(tiles.direct) and self.apart >= tiles.ahead
        results = [*self.init, *counters]
        behind = self.steps.before_last(self.apart) if self.apart else self.steps.upper
        if count is None or not self.apart or self.apart < count:
            results = self.loops(behind, counters)
        for n in range(self.apart):
            k.pieces.start(_share(early, n, self.apart))
            self.is_last = k.holds_nothing = n == self.apart - 1
            k.in_flight = bool(self.plan.running)
            if count is not None:
                results = [*results[:len(self.init)], index((count - self.apart + n) % tiles.slots)]
            results = self.body(self.steps.later(behind, n), results, self._copies_behind(behind, n, self.apart)
                                or (tiles.copy_nothing if tiles.direct else None))
            code.keep_order()
        k.holds_nothing = False
        self.finish(results[:len(self.init)])
        self.end(results[len(self.init):])
        shared.reserved = outer

    def begin(self) -> list[Value]:
        """Starts what the first steps read; what counts slots."""
        self.tiles.prepare()
        self.tiles.begin()
        return [index(0)] * (bool(self.tiles.direct) + bool(self.tiles.held))

    def end(self, _: list[Value]) -> None:
        """Behind the last step, whose counters these are."""
        if self.tiles.direct:    # copies behind the last step write zeros
            self.tiles.wait(0)

    def emit_round(self, rounds: Rounds) -> None:
        """The loop for one of several tiles: during its last steps the first steps of the next tile are copied."""
        self.bind()
        ahead = self.tiles.ahead
        early = self.loads_to_start()
        last = max(ahead, self.apart)
        behind = self.steps.before_last(last)
        values = self.loops(behind, [rounds.slot])
        self.k.in_flight = True
        for n in range(last):
            self.k.pieces.start(_share(early, n, last))
            values = self.body(self.steps.later(behind, n), values, self._copies_behind(behind, n, last)
                               or partial(rounds.copy_next, n - last + ahead))
        self.finish(values[:-1])
        rounds.slot = values[-1]

    def _copies_behind(self, first: Value, n: int, last: int) -> Callable[[Value | None], None] | None:
        """What starts the copies during the n-th of the `last` steps behind the loop, which begin at `first`; None
        where the step to copy is behind the end."""
        if not self.tiles.direct or n >= last - self.tiles.ahead:
            return None
        later = self.steps.later(first, n + self.tiles.ahead)
        test = self.steps.inside(later) if self.steps.count is None else None
        return lambda slot: self.tiles.copy(later, slot, test)

    def bind(self) -> None:
        """Takes the loop's operands as they are at this point."""
        lower, upper, step, *self.init = [self.k.get(v) for v in self.op.operands]
        self.steps = self.tiles.steps = Steps(lower, upper, step)

    def loops(self, end: Value, counters: list[Value]) -> list[Value]:
        """The steps up to `end`, those that are whole in a loop of their own; what they give."""
        carried, begin, tiles = [*self.init, *counters], self.steps.lower, self.tiles
        if self.whole:
            endless, asked = tiles.endless, not (tiles.endless or self.apart)
            middle = self.whole.end(self.k, self.plan, self.steps, end, asked)
            tiles.known, tiles.endless = partial(self.whole.known, self.k), not asked
            carried, begin = self.loop(begin, middle, carried), middle
            tiles.known, tiles.endless = nothing_known, endless
        return self.loop(begin, end, carried)

    def loop(self, begin: Value, end: Value, carried: list[Value]) -> list[Value]:
        """A loop from `begin` to `end`, with the code of a step; what it gives."""
        loop = scf_d.ForOp(begin, end, self.steps.step, carried)
        arguments = list(loop.body.arguments)
        self.k.in_flight = bool(self.plan.running)
        with ir.InsertionPoint(loop.body):
            scf_d.yield_(self.body(arguments[0], arguments[1:]))
        self.k.in_flight = False
        if self.k.chip.llvm_schedules:
            unroll = int_attribute(self.op, UNROLL)
            how = f"count = {unroll} : i32" if unroll > 1 else "disable = true"
            loop.operation.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
                f"#llvm.loop_annotation<unroll = <{how}>>")
        return list(loop.operation.results)

    def finish(self, results: list[Value]) -> None:
        """Hands out what the loop gives; instructions that still run are waited for."""
        k = self.k
        k.in_flight = False
        vectors = [n for n, r in enumerate(self.op.results) if is_vector(r)]
        for a, b in zip(self.op.results, results, strict=True):
            k.values[a] = b
        if self.plan.running and len(vectors) == 1 and k.pieces.stores(self.op.results[vectors[0]]):
            k.late[self.op.results[vectors[0]]] = results[vectors[0]]
        elif self.plan.running:
            for n, value in zip(vectors, warpgroup.wait([results[n] for n in vectors]), strict=True):
                k.values[self.op.results[n]] = value
        k.shared.reads = ANYTHING
        for operand, _ in self.plan.staged:
            k.staged.pop(operand, None)

    def loads_to_start(self) -> list[tuple[Operation, list[int]]]:
        """What is read behind the loop and starts to be loaded some steps before its end, a share a step."""
        steps, loads = self.k.pieces.loads_behind(self.op)
        self.apart = max(self.apart, steps)
        wrong = self.plan.wrong_steps(self.k, self.op, self.apart) if loads else ""
        if wrong:
            raise UserError(f"{self.op.location}: reads behind the loop cannot be loaded in its last steps: {wrong}")
        return loads

    def body(self, iv: Value, carried: list[Value], copy: Callable[[Value | None], None] | None = None) -> list[Value]:
        """The code of one step; what it yields. copy: starts the copies of what a slot gets that is free now."""
        k, tiles = self.k, self.tiles
        n = len(self.init)
        advanced = self.begin_step(iv, carried[n:], copy)
        following = tiles.loaded(self.next_step(iv)) if tiles.held and not self.is_last else None
        k.values[self.block.arguments[0]] = iv
        for a, b in zip(list(self.block.arguments)[1:], carried[:n], strict=True):
            k.values[a] = b
        k.staged.update(dict(self.plan.staged))
        k.shared.reads = ANYTHING
        skipped = tiles.only_loads()
        for op in self.block.operations:
            if op.operation.name == "scf.yield" or op.operation in skipped:
                continue
            value = tiles.known(op.operation)
            if value is None:
                self.emit_op(op.operation)
            else:
                k.values[op.operation.results[0]] = value
        k.run_deferred()
        if following is not None:
            tiles.write(following, advanced[-1])
        made = [k.get(v) for v in list(self.block.operations)[-1].operands]
        self.end_step(advanced)
        return [*made, *advanced]

    def begin_step(self, iv: Value, counters: list[Value], copy: Callable[[Value | None], None] | None) -> list[Value]:
        """All has been read in the step before, and is there for this one; the counters of the next step."""
        freed, advanced = self.tiles.turn(counters)
        self.k.shared.barrier()
        if self.tiles.direct:
            self.k.deferred.append(lambda: copy(freed) if copy is not None else self.tiles.copy_later(iv, freed))
        return advanced

    def emit_op(self, op: Operation) -> None:
        """The code of an operation of a step."""
        self.k.emit(op)

    def end_step(self, counters: list[Value]) -> None:
        """Behind all that a step reads; `counters` are those of the next one."""

    def next_step(self, iv: Value) -> Value:
        """The step behind `iv`, or `iv` itself, whose tiles are loaded again to no purpose, where it is the last."""
        after = self.steps.later(iv, 1)
        if self.apart:
            return after
        return arith_d.select(arith_d.cmpi(arith_d.CmpIPredicate.slt, after, self.steps.upper), after, iv)


def _share(loads: list[tuple[Operation, list[int]]], n: int, steps: int) -> list[tuple[Operation, list[int]]]:
    """What the n-th of `steps` steps starts of `loads`."""
    return loads[len(loads) * n // steps:len(loads) * (n + 1) // steps]

"""Software pipelining: a loop loads the tiles of later steps while it computes on those that are in shared memory.

    for iv { %a = transfer_read; %f = convert %a to fragments; contract %f, ... }
    ->
    copies of the first stages - 1 steps
    for iv { wait for this step's copies; barrier; copies of step iv + (stages - 1); fragments from shared memory;
             contract }

A tile that is read by one transfer or gather in pieces of 4 to 16 bytes is copied asynchronously (cp.async) into one of
`stages` slots. Any other (elements apart, odd alignment, arithmetic before the contraction, chips without such copies)
goes through registers and two slots: its loads start ahead of a step's instructions, and what they gave is written to
the other slot behind them. One barrier a step is enough for both: the slot that is written was read in an earlier step,
which all threads have left. Where contractions of warpgroups run on into the next step, a slot is written one step
later, and there is one more of each tile.
An operand that is the same in all steps is held in registers, or in shared memory where the registers are needed for
what the loop carries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xcc._mlir import arith_d, ir, scf_d
from xcc.passes.gpu import warpgroup
from xcc.passes.gpu.contraction import Contraction
from xcc.passes.gpu.distribute_memory import reader
from xcc.passes.gpu.loads_ahead import LOADS, LoadsAhead
from xcc.passes.gpu.registers import guarded, index, to_memory
from xcc.passes.gpu.shared_memory import ANYTHING
from xcc.passes.gpu.staged_tile import StagedTile
from xcc.passes.gpu.tile_ops import constant, is_vector, owner

if TYPE_CHECKING:
    from xcc.passes.gpu.rounds import Rounds

__all__ = ["PipelinedLoop", "pipelined_loop"]

NAMED = 256     # registers that an instruction can name
STRAIGHT = 4    # steps along k: to count fewer costs more than to read their code once
EARLY = 4       # steps before its end a product starts to load what its epilogue reads
FEW = 16        # steps along k: to load one more to no purpose costs more than the code of two steps that stand twice


def pipelined_loop(k: Any, op: Any, plan: LoadsAhead) -> None:
    """Emits the loop `op` with its tiles loaded ahead."""
    loop = PipelinedLoop(k, op, plan)
    loop.bind()
    loop.emit()


class PipelinedLoop:
    def __init__(self, k: Any, op: Any, plan: LoadsAhead) -> None:
        self.k, self.op, self.staged, self.plan = k, op, plan.staged, plan
        self.block = op.regions[0].blocks[0]
        self.direct = [t for _, t in self.staged if t.direct]
        self.held = [t for _, t in self.staged if not t.direct and not t.kept]
        self.slots = max((t.slots for t in self.direct), default=2)
        self.ahead = self.slots - 1 - plan.running      # steps
        self.endless = False    # what is copied behind the last step are steps of another tile
        plans = [Contraction(o, k.chip, k.threads // k.chip.warp) for o in self.block.operations
                 if o.operation.name == "vector.contract"]
        self.unrollable = len(plans) == 1 and plans[0].instruction is not None
        self.apart = 0          # how many of the last steps stand behind the loop
        self.is_last = False    # what is emitted is the last step: nothing is loaded for a step behind it

    def emit(self) -> None:
        k, code, shared = self.k, self.k.code, self.k.shared
        outer = shared.reserved
        self.prepare()
        for s in range(self.ahead if self.direct else 0):
            self.copy(self.later(self.lower, s), index(s), self.inside(self.later(self.lower, s)))
        if self.held:
            guarded(self.inside(self.lower), lambda: self.write(self.loaded(self.lower), None))
        zero = index(0)
        counters = [zero] * (bool(self.direct) + bool(self.held))
        self.apart = self.steps_apart() if code.amd and not self.direct else self.steps_without_copies()
        early = self.loads_to_start() if self.apart and self.direct else []
        results = [*self.init, *counters]
        if not self.apart or self.apart < self.steps:
            loop = self.loop(self.at(self.steps - self.apart) if self.apart else self.upper, counters)
            results = list(loop.operation.results)
            if code.amd:
                loop.operation.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
                    f"#llvm.loop_annotation<unroll = <{self.unrolled()}>>")
        k.pieces.start(early)
        for n in range(self.steps - self.apart, self.steps):
            self.is_last = k.holds_nothing = n == self.steps - 1
            k.in_flight = bool(self.plan.running)
            results = self.body(self.at(n), [*results[:len(self.init)], index(n % self.slots)],
                                self.copy_nothing if self.direct and n >= self.steps - self.ahead else None)
            code.keep_order()
        k.holds_nothing = False
        self.finish(results[:len(self.init)])
        if self.direct:     # copies behind the last step write zeros
            ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": _i32(0)})
        shared.reserved = outer

    def emit_round(self, rounds: Rounds) -> None:
        """The loop for one of several tiles: during its last steps the first steps of the next tile are copied."""
        self.bind()
        low, high, step = self.bounds
        loop = self.loop(index(high - self.ahead * step), [rounds.slot])
        values = list(loop.operation.results)
        self.k.in_flight = True
        for n in range(self.ahead):
            values = self.body(index(high - (self.ahead - n) * step), values,
                               partial(rounds.copy_next, self, index(low + n * step)))
        self.finish(values[:-1])
        rounds.slot = values[-1]

    @property
    def bounds(self) -> tuple[int, int, int]:
        """First step, end and distance of steps, which are constants."""
        low, high, step = (constant(v) for v in list(self.op.operands)[:3])
        assert low is not None and high is not None and step is not None
        return low, high, step

    def bind(self) -> None:
        """Takes the loop's operands as they are at this point."""
        self.lower, self.upper, self.step, *self.init = [self.k.get(v) for v in self.op.operands]

    def prepare(self) -> None:
        """Shared memory, and what stays in it through the loop."""
        k, shared = self.k, self.k.shared
        shared.begin()
        shared.reserved = 0
        for _, t in self.staged:
            t.buffer = shared.buffer(t.slots * t.elements, t.stored, t.offset)
        for _, t in self.staged:
            if t.kept:      # the first step's barrier is before its reads
                shared.write(to_memory(k.get(t.value), t.stored), t.buffer, t.memory.compose(k.layout(t.value)))
        if self.plan.fenced and any(t.kept for _, t in self.staged):
            warpgroup.fence_writes()
        shared.reserved = max(t.offset + -(-t.slots * t.slot_bytes // 16) * 16 for _, t in self.staged)

    def loop(self, end: Any, counters: list[Any]) -> Any:
        """The loop up to `end`, with its code."""
        loop = scf_d.ForOp(self.lower, end, self.step, [*self.init, *counters])
        arguments = list(loop.body.arguments)
        self.k.in_flight = bool(self.plan.running)
        with ir.InsertionPoint(loop.body):
            scf_d.yield_(self.body(arguments[0], arguments[1:]))
        self.k.in_flight = False
        return loop

    def finish(self, results: list[Any]) -> None:
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
        for operand, _ in self.staged:
            k.staged.pop(operand, None)

    def unrolled(self) -> str:
        """How LLVM unrolls the loop: by the two slots, whose offsets are then constants, but no further.

        Not where that may leave a step over, as barriers cannot be in what is left over; nor where no loop would be
        left, as the code before and behind it would then be among its own, or with FMAs or several products
        (attention): what they hold may all be live at once.
        """
        inside = self.steps - self.apart
        return "count = 2 : i32" if inside > 2 and inside % 2 == 0 and self.unrollable else "disable = true"

    def steps_apart(self) -> int:
        """How many steps stand behind the loop, which is unrolled by two: the last of an odd number; two of a small
        even number, as the last one loads nothing there; all of them, where a loop would hold two at most.

        Addresses and masks of gathers are kept from one step for the next where no loop is between them: that takes the
        registers that CDNA has beyond those of a thread's own.
        """
        if not self.unrollable or not self.steps:
            return 0
        gathers = any(op.name != "vector.transfer_read" for t in self.held for op in t.slice if op.name in LOADS)
        if gathers and self.k.chip.vector_registers <= NAMED:
            return self.steps % 2 if self.steps > 2 else 0
        if self.steps <= STRAIGHT:
            return self.steps
        return 1 if self.steps % 2 else 2 if self.steps <= FEW else 0

    def steps_without_copies(self) -> int:
        """How many steps stand behind a loop whose tiles are all copied asynchronously: those at the end have nothing
        left to copy. An H100 then takes, of f16 models, 1 to 5 % less time.
        """
        alone = self.k.code.async_copies and self.direct and not self.held and self.unrollable
        return self.ahead if alone and self.steps > self.slots else 0

    def loads_to_start(self) -> list[tuple[Any, list[int]]]:
        """What is read behind the loop and starts to be loaded some steps before its end, if it has as many: an H100
        reads the residual of 4096x4096x4096 in f16 in 2.7 % of the product's time, and in 4.2 % behind the loop.
        """
        loads = self.k.pieces.loads_behind(self.op) if self.steps >= EARLY + self.slots else []
        self.apart = max(self.apart, EARLY) if loads else self.apart
        return loads

    def at(self, number: int) -> Any:
        """Where step `number` of a known number of steps begins."""
        low, _, step = self.bounds
        return index(low + number * step)

    @property
    def steps(self) -> int:
        """How many there are; 0 where that is not known."""
        low, high, step = (constant(v) for v in (self.lower, self.upper, self.step))
        return 0 if low is None or high is None or step is None else -((low - high) // step)

    def body(self, iv: Any, carried: list[Any], copy: Callable[[Any], None] | None = None) -> list[Any]:
        """The code of one step; what it yields. copy: starts the copies of what a slot gets that is free now."""
        k = self.k
        n = len(self.init)
        counters = carried[n:]
        advanced = []
        if self.direct:
            slot = counters[0]
            freed = _wrapped(slot, self.ahead, self.slots)
            advanced.append(_wrapped(slot, 1, self.slots))
            for t in self.direct:
                t.start = arith_d.muli(slot, index(t.elements))
            ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": _i32(self.ahead - 1)})
        if self.held:
            slot = counters[-1]
            advanced.append(_wrapped(slot, 1, 2 + self.plan.running))
            for t in self.held:
                t.start = arith_d.muli(slot, index(t.elements))
            if self.plan.fenced:    # asynchronous copies need none
                warpgroup.fence_writes()
        k.shared.barrier()
        if self.direct:
            k.deferred.append(lambda: copy(freed) if copy is not None else self.copy_later(iv, freed))
        following = self.loaded(self.next_step(iv)) if self.held and not self.is_last else None
        k.values[self.block.arguments[0]] = iv
        for a, b in zip(list(self.block.arguments)[1:], carried[:n], strict=True):
            k.values[a] = b
        k.staged.update(dict(self.staged))
        k.shared.reads = ANYTHING
        skipped = self.only_loads()
        for op in self.block.operations:
            if op.operation.name != "scf.yield" and op.operation not in skipped:
                k.emit(op.operation)
        k.run_deferred()
        if following is not None:
            self.write(following, advanced[-1])
        yielded = list(self.block.operations)[-1].operands
        return [*[k.get(v) for v in yielded], *advanced]

    def later(self, iv: Any, steps: int) -> Any:
        if not steps:
            return iv
        size = constant(self.step)
        ahead = index(size * steps) if size is not None else arith_d.muli(self.step, index(steps))
        return arith_d.addi(iv, ahead)

    def inside(self, iv: Any) -> Any:
        """Whether `iv` is a step of the loop; None when it is known to be."""
        low, high = constant(iv), constant(self.upper)
        if low is not None and high is not None and low < high:
            return None
        return arith_d.cmpi(arith_d.CmpIPredicate.slt, iv, self.upper)

    def evaluate(self, tiles: list[StagedTile], iv: Any) -> list[Any]:
        """Emits what the tiles need at step `iv` up to their loads, but not those that are copied directly.

        Returns the operations on what was loaded, which are yet to be emitted.
        """
        self.k.values[self.block.arguments[0]] = iv
        done: set[Any] = set()
        late: list[Any] = []
        for t in tiles:
            for op in t.slice:
                if op in done or (t.direct and op == t.slice[-1]):
                    continue
                done.add(op)
                if any(o is not None and (o in late or o.name in LOADS) for o in map(owner, op.operands)):
                    late.append(op)
                else:
                    self.k.emit(op)
        return late

    def copy_later(self, iv: Any, slot: Any) -> None:
        later = self.later(iv, self.ahead)
        self.copy(later, slot, None if self.endless else self.inside(later))

    def copy(self, iv: Any, slot: Any, test: Any) -> None:
        """Starts the copies of step `iv` to a slot, where `test` holds, as one group; without a branch, so that the
        code around them can be scheduled between them."""
        saved = dict(self.k.values)
        for op in self.evaluate(self.direct, iv):
            self.k.emit(op)
        for t in self.direct:
            offsets = t.memory.compose(self.k.layout(t.value))
            reader(self.k, owner(t.value)).copy_async(t.buffer, offsets, arith_d.muli(slot, index(t.elements)), test)
        self.k.values = saved
        _end_group()

    @staticmethod
    def copy_nothing(_: Any) -> None:
        """In a step that has nothing to copy."""
        _end_group()

    def next_step(self, iv: Any) -> Any:
        """The step behind `iv`, or `iv` itself, whose tiles are loaded again to no purpose, where it is the last."""
        after = self.later(iv, 1)
        if self.apart:
            return after
        return arith_d.select(arith_d.cmpi(arith_d.CmpIPredicate.slt, after, self.upper), after, iv)

    def loaded(self, iv: Any) -> tuple[list[Any], dict[Any, Any]]:
        """Starts the loads of the register-staged tiles of step `iv`, without a branch around them.

        Returns what is to be done to what they give, and the values at that step.
        """
        saved = dict(self.k.values)
        late = self.evaluate(self.held, iv)
        values, self.k.values = self.k.values, saved
        self.k.code.keep_order()
        return late, values

    def write(self, following: tuple[list[Any], dict[Any, Any]], slot: Any) -> None:
        """Writes the register-staged tiles that were loaded into a slot, None for the first."""
        k = self.k
        k.code.keep_order()
        saved = k.values
        late, k.values = following
        for op in late:
            k.emit(op)
        for t in reversed(self.held):
            start = None if slot is None else arith_d.muli(slot, index(t.elements))
            k.shared.write(to_memory(k.get(t.value), t.stored), t.buffer, t.memory.compose(k.layout(t.value)),
                                start, last_first=True)
        k.values = saved

    def only_loads(self) -> set[Any]:
        """Operations of the body that only the tiles' loads use."""
        replaced = {operand for operand, _ in self.staged}
        slices = {op for _, t in self.staged for op in t.slice}
        out: set[Any] = set()
        for op in reversed(list(self.block.operations)):
            op = op.operation
            if op in slices and all(u.owner.operation in out or any(r in replaced for r in u.owner.operation.results)
                                    or (r2 in replaced and u.owner.operation.name == "vector.contract")
                                    for r2 in op.results for u in r2.uses):
                out.add(op)
        return out


def _wrapped(slot: Any, ahead: int, slots: int) -> Any:
    """(slot + ahead) % slots for a slot below `slots`."""
    if slots == 2:
        return arith_d.xori(slot, index(1))
    beyond = arith_d.cmpi(arith_d.CmpIPredicate.uge, slot, index(slots - ahead))
    return arith_d.addi(slot, arith_d.select(beyond, index(ahead - slots), index(ahead)))


def _end_group() -> None:
    """What was copied since the last group is a group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def _i32(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)

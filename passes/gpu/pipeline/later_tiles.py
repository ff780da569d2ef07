"""The tiles of a pipelined loop's later steps: their copies, loads and writes to shared memory.

A tile that is copied asynchronously has `slots` slots, of which the loop's first counter says the one that this step
reads. One that goes through registers is loaded ahead of a step's instructions and written behind them, to the next of
two slots (three, where instructions run on into the next step), which the last counter says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Block, Operation, Value, arith_d, ir, maker, owner_op, scf_d
from xcc.passes.gpu.layout.registers import guarded, to_memory
from xcc.passes.gpu.layout.staged_tile import ASYNC, ONCE, StagedTile
from xcc.passes.gpu.memory.gathers import reader
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.staging_rules import LOADS, may_be_async
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.gpu.vendor.truncated import nearest, round_copied
from xcc.passes.shared.values import index, is_vector, splat_constant, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder


class LaterTiles:
    """The tiles of `plan`, which `block`, the loop's body, loads at `steps`; `k` emits.

    Attributes:
        direct: those that are copied asynchronously, so many steps `ahead`.
        held: those that go through registers.
        endless: no copy is of a step behind the last one, or it is of another tile's.
        known: the value of an operation of the body that is not to be emitted, None for others.
    """

    def __init__(self, k: KernelBuilder, block: Block, plan: LoadsAhead, steps: Steps) -> None:
        self.k, self.block, self.plan, self.staged, self.steps = k, block, plan, plan.staged, steps
        self.direct, self.held = plan.copied, plan.held
        self.rounded = [t for t in self.direct if t.truncated]
        self.slots, self.ahead = plan.slots, plan.ahead
        self.endless = False
        self.known: Callable[[Any], Any] = nothing_known

    def prepare(self) -> None:
        """Shared memory."""
        shared = self.k.shared
        shared.begin()
        shared.reserved = 0
        for _, t in self.staged:
            t.buffer = shared.buffer(t.slots * t.elements, t.stored, t.offset)
        shared.reserved = self.plan.end

    def begin(self) -> None:
        """Copies, or loads and writes, the tiles of the first steps, and what stays through the loop: by copies of the
        first group, or else behind all copies, as it waits for what was read."""
        k, first = self.k, self.steps.lower
        once = [t for _, t in self.staged if t.load == ONCE]
        copied = [t for t in once if self.direct and not t.truncated and may_be_async(k, t.value, t.memory, t.stored)]
        for t in copied:
            reader(k, owner_op(t.value)).copy_async(t.buffer, t.memory.compose(k.layout(t.value)), index(0))
        for s in range(self.ahead if self.direct else 0):
            self.copy(self.steps.later(first, s), index(s), self.steps.inside(self.steps.later(first, s)))
        if self.held:
            guarded(self.steps.inside(first), lambda: self.write(self.loaded(first), None))
        written = [t for t in once if t not in copied]
        for t in written:       # the first step's barrier is before its reads
            k.shared.write(self._stored(t), t.buffer, t.memory.compose(k.layout(t.value)))
        if self.plan.fenced and written:
            warpgroup.fence_writes()

    def turn(self, counters: list[Value], waits: bool = True) -> tuple[Value | None, list[Value]]:
        """Makes each tile the one of the step of `counters`; `waits` for its copies.

        Returns the slot that is free for copies, and the counters of the next step."""
        freed = None
        advanced = []
        if self.direct:
            slot = counters[0]
            freed = _wrapped(slot, self.ahead, self.slots)
            advanced.append(_wrapped(slot, 1, self.slots))
            for t in self.direct:
                t.start = arith_d.muli(slot, index(t.elements))
            if waits:
                self.wait(self.ahead - 1)
                round_copied(self.k, self.rounded)
                if self.rounded and not self.held:      # else behind what these write
                    warpgroup.fence_writes()
        if self.held:
            slot = counters[-1]
            advanced.append(_wrapped(slot, 1, 2 + self.plan.running))
            for t in self.held:
                t.start = arith_d.muli(slot, index(t.elements))
            if self.plan.fenced:    # asynchronous copies need none
                warpgroup.fence_writes()
        return freed, advanced

    def evaluate(self, tiles: list[StagedTile], iv: Value, test: Value | None = None) -> list[Any]:
        """Emits what the tiles need at step `iv` up to their loads, but not those that are copied directly. What says
        where these lie is read where `test` holds: behind the last step there may be no memory.

        Returns the operations on what was loaded, which are yet to be emitted.
        """
        self.k.values[self.block.arguments[0]] = iv
        done: set[Operation] = set()
        late: list[Any] = []
        for t in tiles:
            for op in t.slice:
                if op in done or (t.load == ASYNC and op == t.slice[-1]):
                    continue
                done.add(op)
                value = self.known(op)
                if value is not None:
                    self.k.values[op.results[0]] = value
                elif any(o is not None and (o in late or o.name in LOADS) for o in map(maker, op.operands)):
                    late.append(op)
                elif test is not None and op.name in LOADS:
                    self._read_where(test, op)
                else:
                    self.k.emit(op)
        return late

    def _read_where(self, test: Value, op: Operation) -> None:
        """Emits a load where `test` holds; else it gives zeros."""
        k, result = self.k, op.results[0]
        kind = result.type if not is_vector(result) \
            else vec(k.layout(result).registers, ir.VectorType(result.type).element_type)
        branch = scf_d.IfOp(test, [kind], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            k.emit(op)
            scf_d.yield_([k.values[result]])
        with ir.InsertionPoint(branch.else_block):
            scf_d.yield_([splat_constant(kind, 0)])
        k.values[result] = branch.results[0]

    def copy_later(self, iv: Value, slot: Value | None) -> None:
        later = self.steps.later(iv, self.ahead)
        self.copy(later, slot, None if self.endless else self.steps.inside(later))

    def copy(self, iv: Value, slot: Value | None, test: Value | None) -> None:
        """Starts the copies of step `iv` to a slot, where `test` holds, as one group; without a branch, so that the
        code around them can be scheduled between them."""
        saved = dict(self.k.values)
        for op in self.evaluate(self.direct, iv, test):
            self.k.emit(op)
        for t in self.direct:
            offsets = t.memory.compose(self.k.layout(t.value))
            reader(self.k, owner_op(t.value)).copy_async(t.buffer, offsets, arith_d.muli(slot, index(t.elements)), test)
        self.k.values = saved
        _end_group()

    @staticmethod
    def copy_nothing(_: Value | None) -> None:
        """In a step that has nothing to copy."""
        _end_group()

    @staticmethod
    def wait(groups: int) -> None:
        """Waits until at most so many groups of copies are under way."""
        ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": _i32(groups)})

    def loaded(self, iv: Value) -> tuple[list[Any], dict[Value, Value]]:
        """Starts the loads of the register-staged tiles of step `iv`, without a branch around them.

        Returns what is to be done to what they give, and the values at that step.
        """
        saved = dict(self.k.values)
        late = self.evaluate(self.held, iv)
        values, self.k.values = self.k.values, saved
        self.k.code.keep_order()
        return late, values

    def write(self, following: tuple[list[Any], dict[Value, Value]], slot: Value | None) -> None:
        """Writes the register-staged tiles that were loaded into a slot, None for the first."""
        k = self.k
        k.code.keep_order()
        saved = k.values
        late, k.values = following
        for op in late:
            k.emit(op)
        for t in reversed(self.held):
            start = None if slot is None else arith_d.muli(slot, index(t.elements))
            k.shared.write(self._stored(t), t.buffer, t.memory.compose(k.layout(t.value)), start, last_first=True)
        k.values = saved

    def _stored(self, tile: StagedTile) -> Value:
        """The registers of a tile as they are written to shared memory."""
        value = self.k.get(tile.value)
        return to_memory(nearest(value) if tile.truncated else value, tile.stored)

    def only_loads(self) -> set[Operation]:
        """Operations of the body that only the tiles' loads use."""
        replaced = {operand for operand, _ in self.staged}
        slices = {op for _, t in self.staged for op in t.slice}
        out: set[Operation] = set()
        for op in reversed(list(self.block.operations)):
            op = op.operation
            if op in slices and all(u.owner.operation in out or any(r in replaced for r in u.owner.operation.results)
                                    or (r2 in replaced and u.owner.operation.name == "vector.contract")
                                    for r2 in op.results for u in r2.uses):
                out.add(op)
        return out


def nothing_known(_: Operation) -> Any:
    """No value of an operation is known ahead."""
    return None


def _wrapped(slot: Value | None, ahead: int, slots: int) -> Value:
    """(slot + ahead) % slots for a slot below `slots`."""
    if slots == 2:
        return arith_d.xori(slot, index(1))
    beyond = arith_d.cmpi(arith_d.CmpIPredicate.uge, slot, index(slots - ahead))
    return arith_d.addi(slot, arith_d.select(beyond, index(ahead - slots), index(ahead)))


def _end_group() -> None:
    """What was copied since the last group is a group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def _i32(value: int) -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)

"""Atomic updates of a small buffer in a copy of it in shared memory (privatisation of histograms).

    scf.forall (%i) in (%n) { ...; tile.atomic %v, %counts, %mask, %at }
    ->
    scf.forall (%w) in (min(%n, 528)) {
      %copy = memref.alloc() : memref<4096xi32, #gpu.address_space<workgroup>>, filled with what changes nothing
      scf.for %i = %w to %n step 528 { ...; tile.atomic %v, %copy, %mask, %at }
      tile.atomic (what %copy has become), %counts, ... }

Updates of few places of memory wait for each other in the L2 cache. Where iterations do nothing with a buffer but
update it in one way, and never ask for the old values, workgroups compute one iteration after the other, update a copy,
and at their end add it to the buffer. So they do where the copy has room and takes more updates than it has elements;
else, which the run decides, each update is one of memory. As many bytes for a copy as the kernel's schedule says
(``private``), and as many workgroups (``persistent``); none of kernels with products. Dropped, each update is one of
memory.

Where places and mask are the same in all iterations (sums of columns), threads keep the copy in registers:

    scf.for %i ... iter_args(%t = nothing) { ...; yield %t + %v where %mask }
    tile.atomic %t, %sums, %mask, %at
"""

from __future__ import annotations

from math import prod
from typing import Any

from xcc._mlir import Module, Operation, Type, Value, arith_d, ir, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.index_values import forall_bounds
from xcc.passes.gpu.layout.registers import guarded
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, step_of
from xcc.passes.shared.combining import combiner
from xcc.passes.shared.regions import for_loop, one_dim
from xcc.passes.shared.updates import emit_extent, neutral, update_kind, updated_only
from xcc.passes.shared.values import index, op, splat, splat_constant, vec
from xcc.passes.walk import ops_where

FEWEST = 2              # updates an element of a copy, of a workgroup
MOST_HELD = 64          # elements of a thread, of copies in registers
CHEAP = ("arith.", "vector.step", "vector.broadcast", "vector.shape_cast", "vector.create_mask")
_I, _F = arith_d.CmpIPredicate, arith_d.CmpFPredicate


@register_pass
class PrivateUpdates(Pass):
    """Lets workgroups update copies of small buffers in shared memory."""

    bytes: int = 0              # of a copy; 0: as many as the kernel's schedule says, no copies where it says none
    workgroups: int = 0         # that compute all iterations; 0: as many as the kernel's schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            room = self.bytes or config_int(k.func, "private", 0)
            workgroups = self.workgroups or config_int(k.func, "persistent", 0)
            for forall in k.ops("scf.forall") if room and workgroups else []:
                updates = updated_only(forall)
                if updates and not ops_where(forall, lambda o: o.name in ("vector.contract", "memref.alloc")):
                    with forall.location:
                        _Workgroups(forall, k.threads, workgroups).emit(updates, room // len(updates))
                        forall.erase()


class _Workgroups:
    """What replaces `forall`: so many `workgroups` of `threads` each."""

    def __init__(self, forall: Operation, threads: int, workgroups: int) -> None:
        self.forall, self.lanes, self.workers = forall, threads, workgroups
        with ir.InsertionPoint(forall):
            lower, upper, step = ([index(b) if isinstance(b, int) else b for b in bound]
                                  for bound in forall_bounds(forall))
            self.lower, self.step = lower, step
            self.counts = [arith_d.ceildivsi(arith_d.subi(u, lo), s)
                           for lo, u, s in zip(lower, upper, step, strict=True)]
            self.total = self.counts[0]
            for n in self.counts[1:]:
                self.total = arith_d.muli(self.total, n)
            self.grid = arith_d.minsi(self.total, index(workgroups))

    def emit(self, updates: dict[Value, list[Operation]], room: int) -> None:
        held = self._held(updates)
        with ir.InsertionPoint(self.forall):
            turns = arith_d.ceildivsi(self.total, index(self.workers))
            lines = {memref: _before(memref, self.forall) for memref in updates}
            extents = {memref: emit_extent(memref, lambda v: v) for memref in updates}
            made = ir.Operation.create("scf.forall", operands=[self.grid], regions=1, attributes=one_dim(self.forall))
        block = made.regions[0].blocks.append(ir.IndexType.get())
        with ir.InsertionPoint(block):
            copies = [_Copy(lines[m], found, extents[m], turns, room, self.lanes) for m, found in updates.items()
                      if found[0] not in held]
            for copy in copies:
                copy.fill()
            if copies:
                ir.Operation.create("gpu.barrier")
            own = scf_d.ForOp(block.arguments[0], self.total, index(self.workers), [_nothing_of(u) for u in held])
            with ir.InsertionPoint(own.body):
                end = ir.Operation.create("scf.yield")
            self._iterations(own.induction_variable, end)
            for copy in copies:
                copy.replace()
            if copies:
                ir.Operation.create("gpu.barrier")
            for copy in copies:
                copy.merge()
            _hold({u: lines[u.operands[1]] for u in held}, own, end)
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()

    def _held(self, updates: dict[Value, list[Operation]]) -> list[Operation]:
        """The updates whose copies are in registers: of places that are the same in all iterations, one a buffer. The
        places go ahead of the forall."""
        block, found, room = self.forall.regions[0].blocks[0], [], MOST_HELD * self.lanes
        for update, *others in updates.values():
            value, _, *fixed = update.operands
            steps = [step_of(v, block, self._stays) for v in fixed]
            room -= prod(ir.VectorType(value.type).shape)
            if not others and update.block == block and None not in steps and room >= 0:
                found.append(update)
                wanted = {s for some in steps for s in some or ()}
                for step in [o.operation for o in block.operations if o.operation in wanted]:
                    step.move_before(self.forall)
        return found

    def _stays(self, operation: Operation) -> bool:
        """Whether a step of places is the same in all iterations, where those before it are."""
        turn = set(self.forall.regions[0].blocks[0].arguments)
        return operation.name.startswith(CHEAP) and not turn & set(operation.operands)

    def _iterations(self, number: Value, end: Operation) -> None:
        """The body of the forall, ahead of `end`, for its iteration `number`, the last dim fastest."""
        old = self.forall.regions[0].blocks[0]
        with ir.InsertionPoint(end):
            for d in range(len(self.counts) - 1, -1, -1):
                at = arith_d.remui(number, self.counts[d]) if d else number
                number = arith_d.divui(number, self.counts[d]) if d else number
                place = arith_d.addi(self.lower[d], arith_d.muli(at, self.step[d]))
                old.arguments[d].replace_all_uses_with(place)
        for operation in list(old.operations)[:-1]:
            operation.operation.move_before(end)


def _hold(updates: dict[Operation, Value], loop: Any, end: Operation) -> None:
    """Collects `updates`, each of a line, in what `loop`, which ends with `end`, carries; the insertion point is behind
    it."""
    sums = []
    for update, carried in zip(updates, loop.inner_iter_args, strict=True):
        value, _, mask, _ = update.operands
        with ir.InsertionPoint(update), update.location:
            some = arith_d.select(mask, value, _nothing_of(update))
            sums.append(combiner(update_kind(update), ir.VectorType(value.type).element_type)(carried, some))
    with ir.InsertionPoint(end):
        scf_d.yield_(sums)
    end.erase()
    for (update, line), whole in zip(list(updates.items()), loop.results, strict=True):
        _, _, mask, places = update.operands
        _update(whole, line, mask, places, update_kind(update))
        update.erase()


def _nothing_of(update: Operation) -> Value:
    """A tile of what an update changes nothing by."""
    kind = ir.VectorType(update.operands[0].type)
    return splat_constant(kind, neutral(update_kind(update), kind.element_type))


class _Copy:
    """The copy in shared memory of a buffer of `extent` elements, a `line`, of which there is `room` bytes.

    `lanes` elements are filled and merged at once."""

    def __init__(self, line: Value, updates: list[Operation], extent: Value, turns: Value, room: int,
                 lanes: int) -> None:
        self.line, self.updates, self.extent, self.lanes = line, updates, extent, lanes
        self.element = ir.MemRefType(line.type).element_type
        self.kind = update_kind(updates[0])
        self.most = max(1, room * 8 // self.element.width // lanes) * lanes
        kind = ir.MemRefType.get([self.most], self.element,
                                 memory_space=ir.Attribute.parse("#gpu.address_space<workgroup>"))
        self.memory = op("memref.alloc", [kind], [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))
        each = sum(prod(ir.VectorType(u.operands[0].type).shape) for u in updates)
        enough = arith_d.cmpi(_I.sle, arith_d.muli(extent, index(FEWEST)), arith_d.muli(turns, index(each)))
        self.used = arith_d.andi(arith_d.cmpi(_I.sle, extent, index(self.most)), enough)

    def fill(self) -> None:
        guarded(self.used, lambda: self._each(lambda at, _: op(
            "vector.scatter", [], [self.memory, index(0), at, self._all(), self._nothing()])))

    def merge(self) -> None:
        guarded(self.used, lambda: self._each(self._merge))

    def replace(self) -> None:
        """Each update is one of the copy, where there is one."""
        for update in self.updates:
            with ir.InsertionPoint(update), update.location:
                branch = scf_d.IfOp(self.used, has_else=True)
                for block, memory in ((branch.then_block, self.memory), (branch.else_block, self.line)):
                    with ir.InsertionPoint(block):
                        value, _, mask, places = update.operands
                        _update(value, memory, mask, places, self.kind)
                        scf_d.yield_([])
            update.erase()

    def _merge(self, at: Value, inside: Value) -> None:
        value = op("vector.gather", [self._of(self.element)],
                   [self.memory, index(0), at, self._all(), self._nothing()])
        changed = arith_d.cmpf(_F.UNE, value, self._nothing()) if isinstance(self.element, ir.FloatType) \
            else arith_d.cmpi(_I.ne, value, self._nothing())
        _update(value, self.line, arith_d.andi(inside, changed), at, self.kind)

    def _each(self, body: Any) -> None:
        """`body` of the places of the copy's elements, and of which there are, some at once."""
        with for_loop(index(0), self.extent, index(self.lanes)) as first:
            step = op("vector.step", [self._of(ir.IndexType.get())], [])
            at = arith_d.addi(splat(first, self.lanes), step)
            body(at, arith_d.cmpi(_I.slt, at, splat(self.extent, self.lanes)))

    def _of(self, element: Type) -> Type:
        return vec(self.lanes, element)

    def _all(self) -> Value:
        return splat_constant(self._of(ir.IntegerType.get_signless(1)), True)

    def _nothing(self) -> Value:
        return splat_constant(self._of(self.element), neutral(self.kind, self.element))


def _update(value: Value, memory: Value, mask: Value, places: Value, kind: str) -> None:
    op("tile.atomic", [value.type], [value, memory, mask, places], kind=ir.StringAttr.get(kind))


def _before(memref: Value, forall: Operation) -> Value:
    """A buffer as a line, known ahead of `forall`, at the insertion point."""
    if isinstance(memref.owner, ir.Block) or memref.owner.operation.block != forall.regions[0].blocks[0]:
        return memref
    return memref.owner.operation.clone().results[0]

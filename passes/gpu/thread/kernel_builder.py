"""The per-thread form of each operation of a tile program, for one launch."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from xcc._mlir import Attribute, Block, Operation, Type, Value, ir, scf_d
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.exchange import row_stores
from xcc.passes.gpu.exchange.shared_memory import ANYTHING, SharedMemory
from xcc.passes.gpu.exchange.thread_code import ThreadCode
from xcc.passes.gpu.layout.staged_tile import StagedTile
from xcc.passes.gpu.layout.tile_kernel import TileKernel
from xcc.passes.gpu.layout.tile_ops import CONVERT, LAYOUT
from xcc.passes.gpu.memory import gathers, transfers
from xcc.passes.gpu.memory.lanes import Lanes
from xcc.passes.gpu.pipeline.alternating_loop import AlternatingLoop
from xcc.passes.gpu.pipeline.exchanges import exchange_of, is_staged
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.pipelined_loop import PipelinedLoop
from xcc.passes.gpu.pipeline.rounds import Rounds
from xcc.passes.gpu.thread import compute, positions
from xcc.passes.gpu.thread.atomics import atomic
from xcc.passes.gpu.thread.combine import ACCUMULATE, accumulate, alloc
from xcc.passes.gpu.thread.pieces import IN_PIECES, Pieces
from xcc.passes.gpu.thread.scan import scan
from xcc.passes.gpu.thread.sort import SORT, sort
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.shared.updates import UPDATES
from xcc.passes.shared.values import is_elementwise, is_vector, vec, with_operands
from xcc.targets.base import Chip

FORALL_END = ("scf.forall.in_parallel", "scf.in_parallel")


class KernelBuilder(TileKernel):
    """Emits operations of the kernel `func` into a gpu.func whose first block is `entry`.

    Attributes:
        values: the per-thread value of each value of the tile program.
    """

    def __init__(self, func: Operation, chip: Chip, threads: int, entry: Block, instances: int = 1) -> None:
        super().__init__(func, chip, threads)
        self.values: dict[Value, Value] = dict(zip(func.operation.regions[0].blocks[0].arguments, entry.arguments,
                                               strict=True))
        self.pipelined: dict[Operation, LoadsAhead | None] = {}    # by loop
        self.staged: dict[Value, StagedTile] = {}     # by the operand of a contraction that they replace
        self.deferred: list[Callable[[], None]] = []    # what may be emitted between a contraction's instructions
        self.pieces = Pieces(self)
        self.in_flight = False      # contractions of warpgroups run on into the next step of the loop around
        self.late: dict[Value, Value] = {}  # values that such contractions still compute, waited for when they are used
        self.holds_nothing = False  # no loads of a later step wait in registers while a loop's step computes
        self.rounds: Rounds | None = None   # the tiles that this workgroup computes one after the other
        self.lanes = Lanes()
        self.code = ThreadCode(entry, chip, instances)
        self.shared = SharedMemory(self.code, chip.shared_bytes, self.finish)

    @property
    def loops(self) -> bool:
        """Whether each thread runs iterations of its own (a loop kernel)."""
        return "xcc.loops" in self.func.operation.attributes

    # -- values -------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> Value:
        """The per-thread value of a value of the tile program."""
        if value in self.late:
            self.finish()
        if value in self.pieces.waiting and value not in self.values:
            self.values[value] = self.pieces.get(value, list(range(self.layout(value).registers)))
        return self.values[value]

    def finish(self) -> None:
        """Waits for what contractions still compute, and read in shared memory."""
        for value, running in self.late.items():
            self.values[value] = warpgroup.wait([running])[0]
        self.late.clear()

    def type_of(self, value: Value) -> Type:
        """The type of a value's per-thread form."""
        return vec(self.layout(value).registers, ir.VectorType(value.type).element_type) \
            if is_vector(value) else value.type

    def run_deferred(self) -> None:
        """Emits what waits to be emitted between other instructions."""
        while self.deferred:
            self.deferred.pop(0)()

    # -- operations ---------------------------------------------------------------------------------------------

    def block(self, block: Block, done: Container[Any] = ()) -> None:
        """The operations of a block, but for those that are `done`."""
        for op in block.operations:
            if op.operation.name not in FORALL_END and op.operation not in done:
                self.emit(op.operation)

    def emit(self, op: Operation) -> None:
        """Emits the per-thread form of one operation of the tile program."""
        if len(op.regions):
            self.run_deferred()
            self.finish()
        if self.pieces.defer(op):
            return
        if op.name in _HANDLERS:
            _HANDLERS[op.name](self, op)
        elif op.name == "memref.store" and not self.loops:
            transfers.uniform_store(self, op)
        elif op.name == "arith.constant" and is_vector(op.results[0]):
            positions.constant(self, op)
        elif not self.loops and any(is_vector(v) for v in [*op.operands, *op.results]):
            if op.name == "arith.cmpi" and positions.compared(self, op):
                return
            if not is_elementwise(op):
                raise CompilerBug(f"{op.name} has no distribution to threads")
            self.elementwise(op)
        else:
            self.scalar(op)

    def scalar(self, op: Operation) -> None:
        """Copies an operation on uniform values, with its regions."""
        copy = with_operands(op, map(self.get, op.operands), None, attributes_of(op))
        self.values.update(zip(op.results, copy.results, strict=True))
        for old_region, new_region in zip(op.regions, copy.regions, strict=True):
            for old_block in old_region.blocks:
                new_block = new_region.blocks.append(*[a.type for a in old_block.arguments])
                self.values.update(zip(old_block.arguments, new_block.arguments, strict=True))
                with ir.InsertionPoint(new_block):
                    self.shared.keep_reads()
                    self.block(old_block)
        if len(op.regions):
            self.shared.keep_reads()

    def elementwise(self, op: Operation) -> None:
        """`op` on the thread's registers of its operands, which have the layout of its results."""
        copy = with_operands(op, map(self.get, op.operands), map(self.type_of, op.results), attributes_of(op))
        self.values.update(zip(op.results, copy.results, strict=True))

    @staticmethod
    def elementwise_of(op: Operation, operands: list[Value], registers: int) -> Value:
        """`op`, which has one result, on vectors of some of its registers."""
        kind = vec(registers, ir.VectorType(op.results[0].type).element_type)
        return with_operands(op, operands, [kind], attributes_of(op)).result

    def plan_of(self, loop: Operation) -> LoadsAhead | None:
        """What the scf.for `loop` keeps in shared memory."""
        if loop not in self.pipelined:
            plan = LoadsAhead.of(self, loop)
            self.pipelined[loop] = plan.check(self, loop) if plan is not None else None
        return self.pipelined[loop]

    def barrier(self, _: Operation) -> None:
        self.code.memory_barrier()

    def for_loop(self, op: Operation) -> None:
        if self.rounds is not None and op == self.rounds.loop.op:
            return self.rounds.loop.emit_round(self.rounds)
        plan = self.plan_of(op)
        if plan is not None:
            loop = (AlternatingLoop if plan.alternates else PipelinedLoop)(self, op, plan)
            loop.bind()
            return loop.emit()
        lower, upper, step, *init = [self.get(v) for v in op.operands]
        loop = scf_d.ForOp(lower, upper, step, init)
        old = op.regions[0].blocks[0]
        self.values.update(zip(old.arguments, loop.body.arguments, strict=True))
        self.shared.reads = ANYTHING      # by the step before
        with ir.InsertionPoint(loop.body):
            self.block(old)
        self.shared.keep_reads()
        self.values.update(zip(op.results, loop.operation.results, strict=True))
        return None

    def while_loop(self, op: Operation) -> None:
        copy = ir.Operation.create("scf.while", results=[self.type_of(r) for r in op.results],
                                   operands=[self.get(v) for v in op.operands], regions=2)
        for old_region, new_region in zip(op.regions, copy.regions, strict=True):
            old = old_region.blocks[0]
            new = new_region.blocks.append(*[self.type_of(a) for a in old.arguments])
            self.values.update(zip(old.arguments, new.arguments, strict=True))
            self.shared.reads = ANYTHING      # by the turn before
            with ir.InsertionPoint(new):
                self.block(old)
        self.shared.keep_reads()
        self.values.update(zip(op.results, copy.results, strict=True))

    def branch(self, op: Operation) -> None:
        copy = ir.Operation.create("scf.if", results=[self.type_of(r) for r in op.results],
                                   operands=[self.get(op.operands[0])], regions=2)
        for old_region, new_region in zip(op.regions, copy.regions, strict=True):
            for old_block in old_region.blocks:
                with ir.InsertionPoint(new_region.blocks.append()):
                    self.shared.keep_reads()
                    self.block(old_block)
        self.shared.keep_reads()
        self.values.update(zip(op.results, copy.results, strict=True))

    def convert(self, op: Operation) -> None:
        """The operand in another layout."""
        result = op.results[0]
        if result in self.staged:
            return          # its contractions read it from there
        if is_staged(op, self.plan_of):
            return          # the loop writes it there
        source, target = self.layout(op.operands[0]), self.layout(result)
        value = self.get(op.operands[0])
        self.values[result] = value if source == target else exchange_of(
            op, source, target, self.shared.limit - self.shared.reserved).emit(self.shared, value, source, target)


def attributes_of(op: Operation) -> dict[str, Attribute]:
    """The attributes of `op` but for its layout, and that it is computed in pieces."""
    return {name: op.attributes[name] for name in op.attributes if name not in (LAYOUT, IN_PIECES)}


_HANDLERS: dict[str, Callable[[KernelBuilder, Any], None]] = {
    ACCUMULATE: accumulate,
    **dict.fromkeys(UPDATES, atomic),
    CONVERT: KernelBuilder.convert,
    "gpu.barrier": KernelBuilder.barrier,
    "memref.alloc": alloc,
    SORT: sort,
    "scf.for": KernelBuilder.for_loop,
    "scf.condition": KernelBuilder.scalar,
    "scf.if": KernelBuilder.branch,
    "scf.while": KernelBuilder.while_loop,
    "scf.yield": KernelBuilder.scalar,
    "vector.broadcast": positions.broadcast,
    "vector.constant_mask": positions.mask,
    "vector.contract": compute.contract,
    "vector.create_mask": positions.mask,
    "vector.extract": positions.extract,
    "vector.gather": gathers.gather,
    "vector.multi_reduction": compute.reduction,
    "vector.scan": scan,
    "vector.scatter": gathers.scatter,
    "vector.shape_cast": positions.reshape,
    "vector.step": positions.step,
    "vector.transfer_read": transfers.read,
    "vector.transfer_write": row_stores.write,
    "vector.transpose": positions.transpose,
}

"""What a loop keeps in shared memory, as attributes say it.

    scf.for ... {
      %r = vector.contract {xcc.staged = [{load = "async", memory = "tile=[2048] ...", offset = 0, slots = 3}, {}]} ...
    } {xcc.in_flight = 1, xcc.stages = 4}

`stage-operands` writes the memory layouts, `pipeline-loads` stages and loads, `overlap-products` what runs on,
`plan-shared-memory` slots and offsets, `peel-steps` what stands behind the loop. An operand of several contractions is
described at the first. What is not complete is not pipelined; what cannot be done is a UserError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Block, Operation, Value, ir, maker
from xcc.diagnostics import UserError
from xcc.passes.gpu.layout.forms import memory_of
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import memory_type
from xcc.passes.gpu.layout.staged_tile import ASYNC, ONCE, REGISTERS, StagedTile
from xcc.passes.gpu.layout.tile_ops import CONVERT, element_bytes, int_attribute, shape_of
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.staging_rules import (
    add_on,
    adds_alone,
    loads_of_step,
    may_be_async,
    products,
    take_turns,
)
from xcc.passes.gpu.vendor import warpgroup

if TYPE_CHECKING:
    from xcc.passes.gpu.layout.tile_kernel import TileKernel
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

STAGED = "xcc.staged"           # on a vector.contract: of each operand, what is known of it in shared memory
STAGES = "xcc.stages"           # on an scf.for: steps whose tiles are in shared memory at once
IN_FLIGHT = "xcc.in_flight"     # on an scf.for: steps whose products may still run while the next one begins
PEELED = "xcc.peeled"           # on an scf.for: last steps that stand behind the loop
UNROLL = "xcc.unroll"           # on an scf.for: steps whose code LLVM makes one of the loop's; none: 1
NUMBERS = ("slots", "offset")


@dataclass(frozen=True)
class LoadsAhead:
    """What a loop keeps in shared memory.

    Attributes:
        staged: (the operand of a contraction that is replaced, its tile).
        running: 1 where the contractions of a step run on during the next one: slots are free a step later.
        fenced: contractions read shared memory by themselves, behind a fence of what threads stored there.
        alternates: what runs on are the products of one of two warpgroups, which take turns.
    """

    staged: list[tuple[Value, StagedTile]]
    running: int
    fenced: bool
    alternates: bool = False

    @staticmethod
    def of(k: TileKernel | KernelBuilder, loop: Operation) -> LoadsAhead | None:
        """The tiles that `loop` loads ahead; None where its attributes say that it does not."""
        staged = staged_tiles(k, loop) if STAGES in loop.attributes else []
        if not staged or not all(t.load and t.slots for _, t in staged):
            return None
        fenced = any(k.product(op).from_shared for op in products(loop))
        running = int_attribute(loop, IN_FLIGHT)
        turns = bool(running) and not add_on(k, loop, [t for _, t in staged])
        return LoadsAhead(staged, 0 if turns else running, fenced, turns)

    @property
    def copied(self) -> list[StagedTile]:
        """The tiles that are copied asynchronously."""
        return [t for _, t in self.staged if t.load == ASYNC]

    @property
    def held(self) -> list[StagedTile]:
        """The tiles that go through registers."""
        return [t for _, t in self.staged if t.load == REGISTERS]

    @property
    def slots(self) -> int:
        """Of each tile, in the loop's first counter."""
        return max((t.slots for t in self.copied), default=2)

    @property
    def ahead(self) -> int:
        """Steps that copies are ahead."""
        return self.slots - 1 - self.running

    @property
    def end(self) -> int:
        """The byte of shared memory behind all tiles."""
        return max(t.end for _, t in self.staged)

    def check(self, k: KernelBuilder, loop: Operation) -> LoadsAhead:
        """This, or a UserError where it cannot be done."""
        wrong = self._wrong_slots(k, loop) or self.wrong_steps(k, loop, int_attribute(loop, PEELED))
        if wrong:
            raise UserError(f"{loop.location}: the loop's loads cannot run ahead as its attributes say: {wrong}")
        return self

    def wrong_steps(self, k: KernelBuilder, loop: Operation, peeled: int) -> str:
        """Why the last `peeled` steps cannot stand behind `loop`; empty where they can."""
        count, unroll = Steps.of(loop).count, int_attribute(loop, UNROLL)
        if count is None and peeled and not adds_alone(loop, len(self.copied)):
            return f"{peeled} steps behind it ({PEELED}), of a number that the run knows: there may be fewer, which " \
                   "only sums of products bear whose operands are all copied asynchronously"
        if peeled and self.alternates:
            return f"{peeled} steps behind it ({PEELED}), of a loop in which warpgroups take turns"
        if peeled < 0 or count is not None and peeled > count or peeled and self.held and (self.copied or self.running):
            return f"{peeled} of {count} steps behind it ({PEELED}), or not all tiles are loaded in the same way"
        if unroll and (not k.chip.llvm_schedules or unroll < 0 or not count or (count - peeled) % unroll):
            left = "unknown" if count is None else count - peeled
            return f"{UNROLL} = {unroll} of {left} steps: it must divide them, and LLVM schedule the code"
        return ""

    def _wrong_slots(self, k: KernelBuilder, loop: Operation) -> str:
        tiles = [t for _, t in self.staged]
        slots = {t.slots for t in self.copied}
        if self.running not in (0, 1) or self.alternates and not take_turns(k, loop, tiles):
            return f"{IN_FLIGHT}: what runs on are warpgroups that add to what a loop carries, or two that take turns"
        least = 2 + self.running + self.alternates
        if len(slots) > 1 or slots and min(slots) < least:
            return f"what is copied asynchronously has {least} slots or more, of all tiles as many"
        alignment, end = 16 if not self.fenced else warpgroup.ALIGNMENT, 0
        for t in sorted(tiles, key=lambda t: t.offset):
            if t.load != ASYNC and t.slots != (1 if t.load == ONCE else 2 + self.running):
                return f"a tile that is loaded by '{t.load}' has {t.slots} slots"
            if t.load == ASYNC and not may_be_async(k, t.value, t.memory, t.stored):
                return "a tile has not the form of asynchronous copies"
            if t.offset < end or t.offset % alignment or t.end > k.chip.shared_bytes:
                return f"byte {t.offset} is no multiple of {alignment}, in another tile, or too near to the end"
            end = t.end
        return ""


def forget(loop: Operation) -> None:
    """Takes what attributes say of a loop's operands in shared memory away."""
    for op, name in [*((op, STAGED) for op in products(loop)), (loop, STAGES), (loop, IN_FLIGHT)]:
        if name in op.attributes:
            del op.attributes[name]


def write_staged(loop: Operation, staged: list[tuple[Value, StagedTile]]) -> None:
    """Writes what is known of the operands in shared memory to the contractions of `loop`."""
    left = dict(staged)
    for op in products(loop):
        entries = [_attribute(left.pop(v, None)) for v in list(op.operands)[:2]]
        if any(len(e) for e in entries):
            op.attributes[STAGED] = ir.ArrayAttr.get(entries)
        elif STAGED in op.attributes:
            del op.attributes[STAGED]


def _attribute(tile: StagedTile | None) -> Attribute:
    if tile is None:
        return ir.DictAttr.get({})
    i64 = ir.IntegerType.get_signless(64)
    out: dict[str, Attribute] = {"memory": ir.StringAttr.get(str(tile.memory))}
    if tile.load:
        out["load"] = ir.StringAttr.get(tile.load)
    if tile.slots:
        out |= {name: ir.IntegerAttr.get(i64, getattr(tile, name)) for name in NUMBERS}
    return ir.DictAttr.get(out)


def staged_tiles(k: TileKernel | KernelBuilder, loop: Operation) -> list[tuple[Value, StagedTile]]:
    """What is said of the operands of a loop's contractions: those of its steps, then those made before it."""
    block = loop.regions[0].blocks[0]
    own: dict[Value, StagedTile] = {}
    kept: dict[Any, StagedTile] = {}
    for op in products(loop):
        for number, entry in enumerate(op.attributes[STAGED] if STAGED in op.attributes else []):
            operand = op.operands[number]
            if len(entry) and operand not in own and operand not in kept:
                here = (origin := maker(operand)) is not None and origin.block == block
                (own if here else kept)[operand] = _read(k, op, number, entry, block if here else None)
    return [*own.items(), *kept.items()]


def _read(k: TileKernel | KernelBuilder, op: Operation, number: int, entry: Attribute,
          block: Block | None) -> StagedTile:
    """The tile of an operand; block: of the loop whose steps load it, None where it is made before."""
    operand, product = op.operands[number], k.product(op)
    origin = maker(operand)
    through = block is not None or not product.from_shared
    value = origin.operands[0] if through and origin is not None and origin.name == CONVERT else operand
    steps = loads_of_step(value, block) if block is not None else []
    if steps is None:
        raise UserError(f"{op.location}: operand {number} is not loaded in a step alone, {STAGED} cannot be obeyed")
    load = entry["load"].value if "load" in entry else ""
    if load not in (("", ASYNC, REGISTERS) if block is not None else ("", ONCE)):
        raise UserError(f"{op.location}: operand {number} cannot be loaded by '{load}'")
    numbers = {name: int(entry[name].value) for name in NUMBERS if name in entry}
    stored = memory_type(ir.VectorType(value.type).element_type)
    return StagedTile(value, steps, _memory(k, op, number, value, entry), stored, load=load, **numbers,
                      truncated=product.truncates)


def _memory(k: TileKernel | KernelBuilder, op: Operation, number: int, value: Value, entry: Attribute) -> Layout:
    """The memory layout of an operand: any order of its elements, but the instruction's where that reads it there."""
    try:
        memory = memory_of(entry["memory"].value, shape_of(value))
    except (KeyError, ValueError) as e:
        raise UserError(f"{op.location}: {STAGED} of operand {number} has no memory layout: {e}") from None
    stored = memory_type(ir.VectorType(value.type).element_type)
    fits = not k.product(op).from_shared or memory == warpgroup.matrix_memory(
        k.product(op), number, k.layout(value), element_bytes(stored))
    if not fits:
        raise UserError(f"{op.location}: {STAGED} of operand {number} is no memory layout of {value.type} that its "
                        "contraction can read")
    return memory

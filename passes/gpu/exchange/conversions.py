"""Conversions between layouts: by renaming registers, by shuffles inside a warp, or through shared memory, in pieces
where it has too little room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xcc._mlir import Type, Value, arith_d, ir, vector_d
from xcc.passes.gpu.exchange.exchange_pieces import convert_in_pieces
from xcc.passes.gpu.exchange.lane_exchange import LaneExchange, emit_shuffle, lane_exchange
from xcc.passes.gpu.exchange.shared_layout import best_memory, memory_cycles
from xcc.passes.gpu.exchange.shared_memory import SharedMemory
from xcc.passes.gpu.exchange.thread_code import ThreadCode
from xcc.passes.gpu.layout.forms import row_major
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, memory_type, registers_of, select_registers, to_memory
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.vendor.ldmatrix import loads_matrices
from xcc.passes.shared.values import vec
from xcc.targets.base import Chip

REGISTERS, SHUFFLES, SHARED, PIECES = "registers", "shuffles", "shared", "pieces"
NO_ROOM = 1 << 30       # cycles of a way through shared memory that is full
BARRIER_CYCLES = 30     # that a warp waits at least, where nothing else runs


@dataclass(frozen=True)
class Exchange:
    """How a value gets from one layout to another.

    Attributes:
        by: registers of a thread, shuffles inside a warp, shared memory, or pieces of it where it has too little room.
        memory: from a position in the tile to its place in shared memory, with "shared".
    """

    by: str
    memory: Layout | None = None

    @staticmethod
    def choose(chip: Chip, source: Layout, target: Layout, element: Type, room: int) -> Exchange:
        """The way that takes the fewest cycles; shared memory has `room` bytes."""
        if _renaming(source, target) is not None:
            return Exchange(REGISTERS)
        stored = memory_type(element)
        size, matrix = element_bytes(stored), loads_matrices(chip, stored)
        memory = best_memory(source, target, size, matrix)
        fits = memory.shape[0] * size <= room
        most = memory_cycles(memory, source, target, size, matrix) if fits else NO_ROOM
        lanes, _ = _lanes(source, target, element)
        waits = 2 * BARRIER_CYCLES if source.size("warp") > 1 else 0
        if lanes is not None and lanes.cycles(max(1, _width(element) // 32)) <= most + waits:
            return Exchange(SHUFFLES)
        return Exchange(SHARED, memory) if fits else Exchange(PIECES)

    @staticmethod
    def plain(source: Layout, element: Type, room: int) -> Exchange:
        """Through shared memory, whatever it costs."""
        memory = row_major(source.shape, tuple(reversed(range(len(source.shape)))))
        return Exchange(SHARED, memory) if memory.shape[0] * _bytes(element) <= room else Exchange(PIECES)

    def problem(self, source: Layout, target: Layout, element: Type, room: int) -> str:
        """Why this is no way from `source` to `target`; empty where it is."""
        if self.by == REGISTERS and _renaming(source, target) is None:
            return "other threads hold the elements"
        if self.by == SHUFFLES and _lanes(source, target, element)[0] is None:
            return "no shuffles were found for it"
        if self.by == SHARED and (self.memory is None or self.memory.shape[0] * _bytes(element) > room):
            return f"shared memory has {room} bytes for it"
        return "" if self.by in (REGISTERS, SHUFFLES, SHARED, PIECES) else "there is no such way"

    def emit(self, shared: SharedMemory, value: Value, source: Layout, target: Layout) -> Value:
        """`value` with layout `source` as a register vector of layout `target`."""
        if self.by == REGISTERS:
            return select_registers(value, _renaming(source, target) or [])
        if self.by == SHUFFLES:
            return _shuffled(shared.code, value, source, target)
        if self.memory is None:
            return convert_in_pieces(shared, value, source, target, shared.limit - shared.reserved)
        element = ir.VectorType(value.type).element_type
        stored = memory_type(element)
        place = shared.free_place(self.memory.shape[0] * element_bytes(stored))
        buffer = shared.buffer(self.memory.shape[0], stored, place)
        shared.write(to_memory(value, stored), buffer, self.memory.compose(source))
        shared.barrier()
        return shared.read_tile(buffer, self.memory.compose(target), element)


def convert(shared: SharedMemory, value: Value, source: Layout, target: Layout) -> Value:
    """`value` with layout `source` as a register vector of layout `target`, inside the code of one operation."""
    if source == target:
        return value
    element, room = ir.VectorType(value.type).element_type, shared.limit - shared.reserved
    return Exchange.choose(shared.code.chip, source, target, element, room).emit(shared, value, source, target)


def _bytes(element: Type) -> int:
    return element_bytes(memory_type(element))


def _width(element: Type) -> int:
    return 64 if isinstance(element, ir.IndexType) else int(element.width)


def _renaming(source: Layout, target: Layout) -> list[int] | None:
    """For each target register the source register that holds its element in the same thread, when one does."""
    if source.basis("lane") != target.basis("lane") or source.basis("warp") != target.basis("warp"):
        return None
    held: dict[tuple[int, ...], int] = {}
    for r in reversed(range(source.registers)):
        held[source.at(register=r)] = r
    wanted = [target.at(register=r) for r in range(target.registers)]
    return [held[w] for w in wanted] if all(w in held for w in wanted) else None


def _lanes(source: Layout, target: Layout, element: Type) -> tuple[LaneExchange | None, bool]:
    """The shuffles of a conversion, if some were found; whether two elements in a register change lanes together."""
    pairs = _width(element) == 16 and source.registers > 1 and target.registers > 1 \
        and source.basis("register")[0] == target.basis("register")[0]
    if pairs:
        source, target = (x.with_registers(x.basis("register")[1:]) for x in (source, target))
    return lane_exchange(source, target), pairs


def _shuffled(code: ThreadCode, value: Value, source: Layout, target: Layout) -> Value:
    """`value` in `target` by shuffles."""
    element = ir.VectorType(value.type).element_type
    plan, pairs = _lanes(source, target, element)
    assert plan is not None
    registers = registers_of(value)
    i32 = ir.IntegerType.get_signless(32)
    if pairs:
        pair = vec(2, element)
        registers = [vector_d.extract(vector_d.bitcast(vec(1, i32), from_registers(registers[r:r + 2])),
                                      [], [0]) for r in range(0, len(registers), 2)]

    def shuffle(scalar: Value, mask: int | None, lane: Value | None) -> Value:
        return _shuffle(scalar, lambda word: emit_shuffle(code.warp, word, mask, lane))

    out = plan.emit(code, registers, shuffle)
    if pairs:
        words = [vector_d.bitcast(pair, from_registers([r])) for r in out]
        out = [vector_d.extract(w, [], [n]) for w in words for n in (0, 1)]
    return from_registers(out)


def shuffle_xor(code: ThreadCode, value: Value, mask: int) -> Value:
    """Each register of `value` from the lane whose number differs in the bits of `mask`."""
    return from_registers([_shuffle(s, lambda word: emit_shuffle(code.warp, word, mask, None))
                           for s in registers_of(value)])


def _shuffle(scalar: Value, move: Callable[[Any], Any]) -> Value:
    """A scalar whose 32-bit words went through `move`."""
    i32 = ir.IntegerType.get_signless(32)
    t = scalar.type
    if isinstance(t, ir.IndexType):
        i64 = ir.IntegerType.get_signless(64)
        return arith_d.index_cast(t, _shuffle(arith_d.index_cast(i64, scalar), move))
    if isinstance(t, ir.IntegerType):
        if t.width < 32:
            return arith_d.trunci(t, _shuffle(arith_d.extui(i32, scalar), move))
        if t.width == 64:
            high = move(arith_d.trunci(i32, arith_d.shrui(scalar, arith_d.constant(t, 32))))
            low = move(arith_d.trunci(i32, scalar))
            return arith_d.ori(arith_d.extui(t, low),
                               arith_d.shli(arith_d.extui(t, high), arith_d.constant(t, 32)))
        return move(scalar)
    same = ir.IntegerType.get_signless(t.width)
    return arith_d.bitcast(t, _shuffle(arith_d.bitcast(same, scalar), move))

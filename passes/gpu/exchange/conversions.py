"""Conversions between layouts: by renaming registers, by shuffles inside a warp, or through shared memory, in pieces
where it has too little room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import arith_d, ir, vector_d
from xcc.passes.gpu.exchange.exchange_pieces import convert_in_pieces
from xcc.passes.gpu.exchange.lane_exchange import emit_shuffle, lane_exchange
from xcc.passes.gpu.exchange.shared_layout import best_memory, memory_cycles
from xcc.passes.gpu.exchange.shared_memory import SharedMemory
from xcc.passes.gpu.exchange.thread_code import ThreadCode
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import (
    from_registers,
    memory_type,
    register_vector,
    registers_of,
    select_registers,
    to_memory,
)
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.vendor.ldmatrix import loads_matrices

__all__ = ["convert", "shuffle_xor"]

NO_ROOM = 1 << 30       # cycles of a way through shared memory that is full
BARRIER_CYCLES = 30     # that a warp waits at least, where nothing else runs


def convert(shared: SharedMemory, value: Any, source: Layout, target: Layout) -> Any:
    """`value` with layout `source` as a register vector of layout `target`."""
    if source == target:
        return value
    renamed = _renaming(source, target)
    if renamed is not None:
        return select_registers(value, renamed)
    element = ir.VectorType(value.type).element_type
    stored = memory_type(element)
    matrix = loads_matrices(shared.code.chip, stored)
    memory = best_memory(source, target, element_bytes(stored), matrix)
    size = memory.shape[0] * element_bytes(stored)
    room = shared.limit - shared.reserved
    most = memory_cycles(memory, source, target, element_bytes(stored), matrix) if size <= room else NO_ROOM
    exchanged = _exchange(shared.code, value, source, target, most)
    if exchanged is not None:
        return exchanged
    if size > room:
        return convert_in_pieces(shared, value, source, target, room)
    buffer = shared.buffer(memory.shape[0], stored, shared.free_place(size))
    shared.write(to_memory(value, stored), buffer, memory.compose(source))
    shared.barrier()
    return shared.read_tile(buffer, memory.compose(target), element)


def _renaming(source: Layout, target: Layout) -> list[int] | None:
    """For each target register the source register that holds its element in the same thread, when one does."""
    if source.basis("lane") != target.basis("lane") or source.basis("warp") != target.basis("warp"):
        return None
    held: dict[tuple[int, ...], int] = {}
    for r in reversed(range(source.registers)):
        held[source.at(register=r)] = r
    wanted = [target.at(register=r) for r in range(target.registers)]
    return [held[w] for w in wanted] if all(w in held for w in wanted) else None


def _exchange(code: ThreadCode, value: Any, source: Layout, target: Layout, most: int) -> Any:
    """`value` in `target` by shuffles, where they take fewer cycles than `most` and barriers of several warps."""
    element = ir.VectorType(value.type).element_type
    width = 64 if isinstance(element, ir.IndexType) else int(element.width)
    pairs = width == 16 and source.registers > 1 and target.registers > 1 \
        and source.basis("register")[0] == target.basis("register")[0]
    if pairs:       # two elements in a register change lanes together
        source, target = (x.with_registers(x.basis("register")[1:]) for x in (source, target))
    plan = lane_exchange(source, target)
    waits = 2 * BARRIER_CYCLES if source.size("warp") > 1 else 0
    if plan is None or plan.cycles(max(1, width // 32)) > most + waits:
        return None
    registers = registers_of(value)
    i32 = ir.IntegerType.get_signless(32)
    if pairs:
        pair = register_vector(2, element)
        registers = [vector_d.extract(vector_d.bitcast(register_vector(1, i32), from_registers(registers[r:r + 2])),
                                      [], [0]) for r in range(0, len(registers), 2)]

    def shuffle(scalar: Any, mask: int | None, lane: Any) -> Any:
        return _shuffle(scalar, lambda word: emit_shuffle(code.warp, word, mask, lane))

    out = plan.emit(code, registers, shuffle)
    if pairs:
        words = [vector_d.bitcast(pair, from_registers([r])) for r in out]
        out = [vector_d.extract(w, [], [n]) for w in words for n in (0, 1)]
    return from_registers(out)


def shuffle_xor(code: ThreadCode, value: Any, mask: int) -> Any:
    """Each register of `value` from the lane whose number differs in the bits of `mask`."""
    return from_registers([_shuffle(s, lambda word: emit_shuffle(code.warp, word, mask, None))
                           for s in registers_of(value)])


def _shuffle(scalar: Any, move: Callable[[Any], Any]) -> Any:
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

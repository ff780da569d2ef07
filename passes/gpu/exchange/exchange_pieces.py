"""Conversions through less shared memory than a tile takes: a part of its positions at a time.

A part is the positions at which some linear functions (parities of position bits) have given values. Best are
functions that only registers change, in both layouts: then all threads write and read the same registers of each part,
and the parts together take as many instructions as the whole. Where there are too few of those, some depend on the warp
or the lane: a thread then writes, and keeps what it reads, in the part that is its turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xcc._mlir import Value, arith_d, ir, scf_d
from xcc.passes.gpu.exchange.shared_layout import best_memory
from xcc.passes.gpu.exchange.shared_memory import SharedMemory
from xcc.passes.gpu.layout.linear import Layout, bits, log2
from xcc.passes.gpu.layout.registers import from_memory, from_registers, guarded, memory_type, registers_of, to_memory
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.shared.values import index

WARPS, LANES = ("warp",), ("lane",)
THREADS = LANES + WARPS


def convert_in_pieces(shared: SharedMemory, value: Value, source: Layout, target: Layout, room: int) -> Value:
    """`value` with layout `source` as a register vector of layout `target`, through `room` bytes at most."""
    element = ir.VectorType(value.type).element_type
    stored = memory_type(element)
    size = element_bytes(stored)
    count = max(0, source.total_bits - max(0, (room // size).bit_length() - 1))
    functions = part_functions(source, target, count)
    written, read = _Side.of(source, functions), _Side.of(target, functions)
    memory = best_memory(written.layout, read.layout, size)
    registers = registers_of(to_memory(value, stored))
    out: list[Any] = [None] * target.registers
    for part in range(1 << count):
        buffer = shared.buffer(memory.shape[0], stored, shared.free_place(memory.shape[0] * size))
        _write(shared, registers, written, buffer, memory, part)
        shared.barrier()
        _read(shared, out, read, buffer, memory, part)
    return from_memory(from_registers(out), element)


@lru_cache(maxsize=256)
def part_functions(source: Layout, target: Layout, count: int) -> tuple[int, ...]:
    """`count` independent masks of bits of a flat position, whose parities say which part it is in, in echelon form.

    Those that fewer inputs of the layouts change come first.
    """
    constant = [((source, THREADS), (target, THREADS)), ((source, THREADS), (target, LANES)),
                ((source, LANES), (target, THREADS)), ((source, LANES), (target, LANES)), ()]
    chosen: dict[int, int] = {}     # by the highest bit of each
    for kept in constant:
        columns = [source.flatten(v) for layout, names in kept for name in names for v in layout.basis(name)]
        for mask in _annihilators(columns, source.total_bits):
            if len(chosen) < count:
                _add(chosen, mask)
    return tuple(sorted(chosen.values(), reverse=True))


def _add(echelon: dict[int, int], mask: int) -> None:
    """Adds `mask` to independent masks of which each has a highest bit that no other has."""
    for top, other in echelon.items():
        if mask >> top & 1:
            mask ^= other
    if not mask:
        return
    top = mask.bit_length() - 1
    for key, other in echelon.items():
        if other >> top & 1:
            echelon[key] = other ^ mask
    echelon[top] = mask


def _annihilators(columns: Iterable[int], width: int) -> list[int]:
    """A basis of the masks whose parity is even with each of `columns`, numbers of `width` bits."""
    echelon: dict[int, int] = {}
    for c in columns:
        _add(echelon, c)
    return [1 << free | sum(1 << top for top, c in echelon.items() if c >> free & 1)
            for free in range(width) if free not in echelon]


def _values(functions: tuple[int, ...], flat: int) -> int:
    return sum((f & flat).bit_count() % 2 << i for i, f in enumerate(functions))


@dataclass(frozen=True)
class _Side:
    """How a layout's registers lie in the parts.

    whole: the layout; layout: that of the registers of one part, in the positions that a part has; groups: by the
    values of the functions for lane 0 of warp 0, the registers with these, in the order of `layout`.
    """

    whole: Layout
    layout: Layout
    groups: dict[int, list[int]]
    functions: tuple[int, ...]

    @staticmethod
    def of(whole: Layout, functions: tuple[int, ...]) -> _Side:
        kept = _kept(whole, functions)
        inside: dict[int, int] = {}     # registers of the part with value 0: a basis of them, by their highest bit
        spanned: dict[int, int] = {}
        for r in range(whole.registers):
            value = _values(functions, whole.flatten(whole.at(register=r)))
            spanned.setdefault(value, r)
        for r in range(1, whole.registers):
            if not _values(functions, whole.flatten(whole.at(register=r))):
                _add(inside, r)
        basis = [inside[top] for top in sorted(inside)]
        bases = {"register": [_packed(kept, whole.at(register=r)) for r in basis]}
        bases |= {name: [_packed(kept, v) for v in whole.basis(name)] for name in THREADS}
        layout = Layout.make([1 << len(held) for held in kept], bases)
        groups = {value: [first ^ _combined(basis, n) for n in range(1 << len(basis))]
                  for value, first in spanned.items()}
        return _Side(whole, layout, groups, functions)

    def start(self, memory: Layout, registers: list[int]) -> tuple[int, list[int]]:
        """The lowest place of a group in `memory`, so that runs are aligned, and its registers from there."""
        kept = _kept(self.whole, self.functions)
        offsets = [memory.at(**{f"dim{d}": c for d, c in enumerate(_packed(kept, self.whole.at(register=r)))})[0]
                   for r in registers]
        first = offsets.index(min(offsets))
        return offsets[first], [registers[first ^ n] for n in range(len(registers))]

    def turn(self, shared: SharedMemory, group: int, part: int) -> Value | bool:
        """Whether registers of `group` are in `part`: True, False, or an i1 that differs between threads."""
        columns = {name: [_values(self.functions, self.whole.flatten(v)) for v in self.whole.basis(name)]
                   for name in THREADS}
        if not any(v for vs in columns.values() for v in vs):
            return group == part
        moving = 0
        for vs in columns.values():
            for v in vs:
                moving |= v
        if (group ^ part) & ~moving:
            return False
        code = shared.code
        with code.at_entry():
            mine = code.spread([(code.lane, columns["lane"]), (code.warp_id, columns["warp"])])
        return arith_d.cmpi(arith_d.CmpIPredicate.eq, mine, index(group ^ part))


def _kept(layout: Layout, functions: tuple[int, ...]) -> list[list[int]]:
    """For each dim the bits that tell the positions of a part apart: all but the highest of each function."""
    gone = {f.bit_length() - 1 for f in functions}
    out, low = [], layout.total_bits
    for size in layout.shape:
        low -= log2(size)
        out.append([b for b in range(log2(size)) if low + b not in gone])
    return out


def _packed(kept: list[list[int]], position: tuple[int, ...]) -> list[int]:
    return [sum((c >> b & 1) << i for i, b in enumerate(held)) for held, c in zip(kept, position, strict=True)]


def _combined(basis: list[int], n: int) -> int:
    out = 0
    for b in bits(n):
        out ^= basis[b]
    return out


def _write(shared: SharedMemory, registers: list[Value], side: _Side, buffer: Value, memory: Layout, part: int) -> None:
    offsets = memory.compose(side.layout)
    for group, members in side.groups.items():
        turn = side.turn(shared, group, part)
        if turn is False:
            continue
        fixed, members = side.start(memory, members)
        piece = from_registers([registers[r] for r in members])

        def store(piece: Value = piece, fixed: int = fixed) -> None:
            shared.write(piece, buffer, offsets, fixed=fixed, copies=side.whole)

        guarded(None if turn is True else turn, store)


def _read(shared: SharedMemory, out: list[Value | None], side: _Side, buffer: Value, memory: Layout, part: int) -> None:
    offsets = memory.compose(side.layout)
    stored = ir.MemRefType(buffer.type).element_type
    for group, members in side.groups.items():
        turn = side.turn(shared, group, part)
        if turn is False:
            continue
        fixed, members = side.start(memory, members)
        if turn is True or out[members[0]] is None:     # threads whose turn is later read it again
            read = shared.read(buffer, offsets, stored, fixed)
        else:
            before = from_registers([v for r in members if (v := out[r]) is not None])
            branch = scf_d.IfOp(turn, [before.type], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf_d.yield_([shared.read(buffer, offsets, stored, fixed)])
            with ir.InsertionPoint(branch.else_block):
                scf_d.yield_([before])
            read = branch.results[0]
        for r, v in zip(members, registers_of(read), strict=True):
            out[r] = v

"""Values that each chunk of a kernel computes first, into memory of its own, where what reads them finds them.

Without it a value is computed where it is needed, in registers. A value that many tiles of the chunk need, and that is
too large for registers, is kept: the part of it that the chunk reads, no more, so that it stays in a core's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.build.buffers import memref_type, storage_type
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor, bare_loop, loop
from xcc.passes.linalg.schedule.cache_sets import LINE_BYTES, spread_dims
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim


@dataclass(frozen=True, eq=False)
class Part:
    """What a chunk keeps of tensor `t`.

    dims: the part's. stored: a tensor of the dims that `memref` has, of which the part may be less. origin: where the
    part begins in each dim of `t`, zero where it is whole. ends: how far it goes in the dims whose last part is
    smaller, as an index.
    """

    t: Tensor
    dims: tuple[int, ...]
    stored: Tensor
    memref: Value
    origin: tuple[Ix, ...]
    ends: dict[int, Value]

    def load(self, b: Builder, memory: Memory, indices: Sequence[Ix]) -> V:
        """The tile of `t` at `indices`."""
        return memory.load(self.stored, [b.ix_add(i, b.ix_scale(o, -1))
                                        for i, o in zip(indices, self.origin, strict=True)])


def kept_parts(kernel: Kernel, schedule: Schedule, main: Tensor, memory: Memory,
               ranges: dict[int, tuple[Value, Value | None]]) -> list[Part]:
    """The parts that a chunk of `main` keeps, in order; `ranges` are the chunk's of the dims of `main`."""
    positions = _positions(main)
    return [_part(kernel.ops[kept.op].results[0], kept.vector, positions, schedule, memory, ranges)
            for kept in schedule.cpu.kept]


def _positions(main: Tensor) -> dict[Tensor, Access]:
    """For each value that `main` is computed from, the coordinates at which it is needed, over the dims of `main`.

    Loops of reductions are symbols without a meaning.
    """
    found: dict[Tensor, Access] = {}

    def visit(t: Tensor, access: Access) -> None:
        op = t.producer
        known = t in found
        found.setdefault(t, access)
        if op is None or known:
            return
        env: dict[str, Dim] = {f"i{p}": symbolic.sym(f"r{len(found)}_{p}") for p in range(len(op.loops))}
        env |= op.loops_at(access, t.index)
        for s, a in op.reads(env):
            visit(s, a)

    visit(main, tuple(loop(n) for n in range(len(main.dims))))
    return found


def _part(t: Tensor, tile: Sequence[int], positions: dict[Tensor, Access], schedule: Schedule, memory: Memory,
          ranges: dict[int, tuple[Value, Value | None]]) -> Part:
    """The part of `t` that is computed in tiles of `tile`."""
    b, dims, origin = memory.b, list[Any](), []
    ends: dict[int, Value] = {}
    for n, (e, size) in enumerate(zip(positions[t], t.dims, strict=True)):
        d, step = _walk(e)
        if d is None and any(s[1:].isdigit() and int(s[1:]) in ranges for s in symbolic.symbols_of(e)):
            raise UserError(f"xcc.config: a chunk cannot keep a value that it reads at {e}")
        if d not in ranges:
            dims.append(size)
            origin.append(Ix())
            continue
        if schedule.block[d] % step:
            raise UserError(f"xcc.config: chunks of {schedule.block[d]} do not keep tiles of {step}")
        low, high = ranges[d]
        dims.append(schedule.block[d] // step)
        first = b.binary("arith.divui", low, b.int(step)) if step > 1 else low
        origin.append(b.ix_of(first))
        if high is not None:
            last = b.binary("arith.ceildivui", high, b.int(step)) if step > 1 else high
            ends[n] = b.sub(last, first)
    if not all(isinstance(d, int) for d in dims):
        raise UserError(f"xcc.config: a chunk cannot keep {dims} elements")
    stored = replace(t, dims=spread_dims(dims, tile, storage_type(t.element).width // 8), producer=None, constant=None)
    memref = ir.Operation.create(
        "memref.alloca", results=[memref_type(stored.dims, t.element)], operands=[], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)}).results[0]
    memory.bind(stored, memref)
    return Part(t, tuple(dims), stored, memref, tuple(origin), ends)


def _walk(e: Dim) -> tuple[int | None, int]:
    """(d, m) of ``i<d> floordiv m``, m = 1 for a bare ``i<d>``; (None, 1) for anything else."""
    d = bare_loop(e)
    if d is not None or not isinstance(e, symbolic.Expr):
        return d, 1
    atoms: list[Any] = [atom for monomial, c in e.terms if c == 1 for atom in monomial]
    if len(e.terms) == 1 and len(atoms) == 1 and atoms[0][0] == "floordiv" and isinstance(atoms[0][2], int):
        return bare_loop(atoms[0][1]), atoms[0][2]
    return None, 1

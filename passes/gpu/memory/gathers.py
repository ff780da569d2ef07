"""Per-thread gathers, one access for each run of neighbours that lie together in memory, and scatters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, memref_d, scf_d, vector_d
from xcc.passes.gpu.index.index_vectors import gather_run, same_along
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, guarded, register_groups, registers_of
from xcc.passes.gpu.layout.tile_ops import element_bytes, step_of
from xcc.passes.gpu.memory.async_copies import AsyncCopy, copy_async
from xcc.passes.gpu.memory.transfers import Transfer
from xcc.passes.shared.attributes import INSIDE
from xcc.passes.shared.values import is_vector, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder


class Gather:
    """The memory accesses of one thread for a gather: one for each run of neighbours that lie together in memory."""

    def __init__(self, k: KernelBuilder, op: Operation) -> None:
        operands = list(op.operands)
        self.k, self.op, self.layout = k, op, k.layout(op.results[0])
        self.base, *self.offsets = [k.get(v) for v in operands[:-3]]
        self.chosen, self.mask, self.other = (registers_of(k.get(v)) for v in operands[-3:])
        self.element = ir.VectorType(op.results[0].type).element_type
        self.bytes = element_bytes(self.element)
        self.width, run = self.layout.contiguous(gather_run(op, k.chip.vector_bytes))
        self.groups = register_groups(self.layout.registers, run)
        self.uniform = Gather.uniform_mask(op, self.width)

    @staticmethod
    def uniform_mask(op: Operation, width: int) -> bool:
        """Whether the mask is all on or all off in each run of `width` elements."""
        return width == 1 or same_along(op.operands[len(op.operands) - 2], width)

    def indices(self, register: int) -> list[Value]:
        return _last_plus(self.offsets, self.chosen[register])

    def load(self) -> list[Value]:
        """The elements by register, each access behind its test, or its test behind it where that is as good."""
        if INSIDE in self.op.attributes and not self.k.chip.masks_loads:
            return self._load_all()
        out: list[Any] = [None] * self.layout.registers
        for group in self.groups:
            for part in [group] if self.uniform else [[r] for r in group]:
                kind = vec(len(part), self.element)
                branch = scf_d.IfOp(self.mask[part[0]], [kind], has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    aligned = len(part) * self.bytes if len(part) > 1 else None
                    scf_d.yield_([vector_d.load(kind, self.base, self.indices(part[0]), alignment=aligned)])
                with ir.InsertionPoint(branch.else_block):
                    scf_d.yield_([from_registers([self.other[r] for r in part])])
                for r, s in zip(part, registers_of(branch.results[0]), strict=True):
                    out[r] = s
        return out

    def _load_all(self) -> list[Value]:
        """Without branches: loads are in flight together, and windows of neighbours share those of one place."""
        out: list[Any] = [None] * self.layout.registers
        lanes, (chosen, mask) = self.k.lanes, (self.k.get(v) for v in list(self.op.operands)[-3:-1])
        for group in self.groups:
            kind = vec(len(group), self.element)
            aligned = len(group) * self.bytes if len(group) > 1 else None
            loaded = vector_d.load(kind, self.base, _last_plus(self.offsets, lanes.element(chosen, group[0])),
                                   alignment=aligned)
            if self.uniform:
                loaded = arith_d.select(lanes.element(mask, group[0]), loaded,
                                        from_registers([self.other[r] for r in group]))
            for r, element in zip(group, registers_of(loaded), strict=True):
                out[r] = element if self.uniform else arith_d.select(self.mask[r], element, self.other[r])
        return out

    def copy_async(self, buffer: Any, offsets: Layout, start: Any, test: Any = None) -> None:
        """Copies into shared memory `buffer` at `offsets` from `start` on; zeros where the mask or `test` is off.

        Coordinates that each step divides out anew are put together again; where steps only add to them, what they are
        clamped to is known ahead of the loop."""
        *_, places, test_of, _ = self.op.operands
        lanes, chosen, mask = self.k.lanes, self.k.get(places), self.k.get(test_of)
        steps = step_of(places, self.op.block, lambda op: not len(op.regions)) or []
        divided = any(op.name == "arith.remui" and is_vector(op.results[0]) for op in steps)

        def part(group: list[int]) -> AsyncCopy:
            r = group[0]
            if not divided:
                return group, self.base, self.indices(r), self.mask[r]
            return group, self.base, _last_plus(self.offsets, lanes.inside(chosen, mask, r)), lanes.element(mask, r)

        def parts() -> list[AsyncCopy]:
            return [part(g) for g in self.groups]

        copy_async(self.k, parts, (buffer, offsets, start), self.width, self.bytes, test)


def reader(k: KernelBuilder, op: Operation) -> Transfer | Gather:
    """The accesses of a transfer_read or gather in its layout."""
    return Gather(k, op) if op.name == "vector.gather" else Transfer.of(k, op)


def gather(k: KernelBuilder, op: Operation) -> None:
    """vector.gather"""
    k.values[op.results[0]] = from_registers(Gather(k, op).load())


def scatter(k: KernelBuilder, op: Operation) -> None:
    """vector.scatter: one guarded store an element."""
    operands = list(op.operands)
    base, *offsets = [k.get(v) for v in operands[:-3]]
    layout = k.layout(operands[-1])
    chosen, mask, value = (registers_of(k.get(v)) for v in operands[-3:])

    def store_one(at: Value, scalar: Value) -> None:
        memref_d.store(scalar, base, _last_plus(offsets, at))

    def store() -> None:
        for i, m, v in zip(chosen, mask, value, strict=True):
            guarded(m, partial(store_one, i, v))

    guarded(k.code.first_copy(layout), store)


def _last_plus(offsets: list[Value], chosen: Value) -> list[Value]:
    if not isinstance(chosen.type, ir.IndexType):
        chosen = arith_d.index_cast(ir.IndexType.get(), chosen)
    return [*offsets[:-1], arith_d.addi(offsets[-1], chosen)]

"""Per-thread loads and stores: transfers as the widest accesses the layout and alignment allow, gathers, scatters."""

from __future__ import annotations

from functools import partial
from typing import Any

from xcc._mlir import arith_d, gpu_d, ir, memref_d, scf_d, vector_d
from xcc.passes.gpu.analysis import Access, element_bytes, gather_run, register_run, same_along
from xcc.passes.gpu.assign_layouts import mask_layout
from xcc.passes.gpu.layout import Layout
from xcc.passes.gpu.thread_code import (
    from_registers,
    guarded,
    index,
    register_groups,
    register_vector,
    registers_of,
    select_registers,
)


def read(k: Any, op: Any) -> None:
    """vector.transfer_read"""
    result = op.results[0]
    layout = k.layout(result)
    access = Access(op, k.chip.vector_bytes)
    padding = k.get(op.operands[1 + len(access.sizes)])
    element = ir.VectorType(result.type).element_type
    transfer = Transfer(k, op, access, layout)
    out: list[Any] = [None] * layout.registers
    for group in transfer.groups:
        piece = transfer.load(group, element, padding)
        for r, s in zip(group, registers_of(piece), strict=True):
            out[r] = s
    if len(transfer.groups) == 1 and transfer.groups[0] == list(range(layout.registers)):
        k.values[result] = piece
    else:
        k.values[result] = from_registers(out)


def write(k: Any, op: Any) -> None:
    """vector.transfer_write"""
    value = op.operands[0]
    layout = k.layout(value)
    transfer = Transfer(k, op, Access(op, k.chip.vector_bytes), layout)

    def store() -> None:
        for group in transfer.groups:
            transfer.store(group, select_registers(k.get(value), group))

    guarded(k.code.first_copy(layout), store)


class Transfer:
    """The memory accesses of one thread for a transfer op."""

    def __init__(self, k: Any, op: Any, access: Access, layout: Layout) -> None:
        self.k, self.access, self.layout = k, access, layout
        self.memref = k.get(access.memref)
        self.base = [k.get(v) for v in access.indices]
        self.width, run = access.run(layout)
        self.groups = register_groups(layout.registers, run)
        self.mask: list[Any] | None = None
        segments = list(op.attributes["operandSegmentSizes"])
        if segments[-1]:
            mask = op.operands[len(op.operands) - 1]
            wanted = mask_layout(op, layout)
            scalars = registers_of(k.get(mask))
            held = {wanted.at(register=r): r for r in reversed(range(wanted.registers))}
            kept = sorted((d, i) for i, d in enumerate(access.dims) if d >= 0)
            self.mask = [scalars[held[tuple(layout.at(register=r)[i] for _, i in kept)]]
                         for r in range(layout.registers)]
            self.uniform = self.width == 1 or same_along(mask, self.width)

    @staticmethod
    def of(k: Any, op: Any) -> Transfer:
        """The accesses of a transfer_read in its layout."""
        return Transfer(k, op, Access(op, k.chip.vector_bytes), k.layout(op.results[0]))

    @staticmethod
    def uniform_mask(op: Any, width: int) -> bool:
        """Whether the mask of a transfer op is all on or all off in each access of `width` elements."""
        return width == 1 or same_along(op.operands[len(op.operands) - 1], width)

    def copy_async(self, buffer: Any, offsets: Layout, start: Any) -> None:
        """Copies into shared memory `buffer` at `offsets` from `start` on; zeros where the mask is off."""
        token = ir.Type.parse("!nvgpu.device.async.token")
        size = self.width * self.access.bytes
        attributes = {"dstElements": ir.IntegerAttr.get(ir.IndexType.get(), self.width)}
        if size == 16:
            attributes["bypassL1"] = ir.UnitAttr.get()

        def copy() -> None:
            for group in self.groups:
                at = self.k.code.offset_of(offsets, group[0], start=start)
                indices = self.indices(group[0])
                limit = [] if self.mask is None else \
                    [arith_d.select(self.mask[group[0]], index(self.width), index(0))]
                ir.Operation.create(
                    "nvgpu.device_async_copy", results=[token], operands=[buffer, at, self.memref, *indices, *limit],
                    attributes={**attributes, "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                        [1, 1, 1, len(indices), len(limit)])})

        guarded(self.k.code.first_copy(offsets), copy)

    def indices(self, register: int) -> list[Any]:
        out = list(self.base)
        for dim, memory in enumerate(self.access.dims):
            if memory >= 0 and self.layout.shape[dim] > 1:
                out[memory] = arith_d.addi(out[memory], self.k.code.coordinate(self.layout, register, dim))
        return out

    def load(self, group: list[int], element: Any, padding: Any) -> Any:
        kind = register_vector(len(group), element)

        def plain() -> Any:
            return vector_d.load(kind, self.memref, self.indices(group[0]), alignment=self.width * self.access.bytes)

        if self.mask is None:
            return plain()
        whole = self.mask[group[0]] if self.uniform else _all([self.mask[r] for r in group])
        branch = scf_d.IfOp(whole, [kind], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf_d.yield_([plain()])
        with ir.InsertionPoint(branch.else_block):
            if self.uniform:
                scf_d.yield_([vector_d.broadcast(kind, padding)])
            else:
                scf_d.yield_([from_registers([self._load_one(r, element, padding) for r in group])])
        return branch.results[0]

    def _load_one(self, register: int, element: Any, padding: Any) -> Any:
        assert self.mask is not None
        branch = scf_d.IfOp(self.mask[register], [element], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf_d.yield_([memref_d.load(self.memref, self.indices(register))])
        with ir.InsertionPoint(branch.else_block):
            scf_d.yield_([padding])
        return branch.results[0]

    def _store_one(self, register: int, scalar: Any) -> None:
        memref_d.store(scalar, self.memref, self.indices(register))

    def store(self, group: list[int], piece: Any) -> None:
        def plain() -> None:
            vector_d.store(piece, self.memref, self.indices(group[0]), alignment=self.width * self.access.bytes)

        if self.mask is None:
            plain()
            return
        whole = self.mask[group[0]] if self.uniform else _all([self.mask[r] for r in group])
        branch = scf_d.IfOp(whole, has_else=not self.uniform)
        with ir.InsertionPoint(branch.then_block):
            plain()
            scf_d.yield_([])
        if not self.uniform:
            mask = self.mask
            with ir.InsertionPoint(branch.else_block):
                for r, s in zip(group, registers_of(piece), strict=True):
                    guarded(mask[r], partial(self._store_one, r, s))
                scf_d.yield_([])


def _all(tests: list[Any]) -> Any:
    joined = tests[0]
    for t in tests[1:]:
        joined = arith_d.andi(joined, t)
    return joined


def gather(k: Any, op: Any) -> None:
    """vector.gather: one guarded load for each run of neighbours that lie together in memory, else for each element."""
    result = op.results[0]
    operands = list(op.operands)
    layout = k.layout(result)
    base, *offsets = [k.get(v) for v in operands[:-3]]
    chosen, mask, other = (registers_of(k.get(v)) for v in operands[-3:])
    element = ir.VectorType(result.type).element_type
    width, run = register_run(layout, gather_run(op, k.chip.vector_bytes))
    uniform = width == 1 or same_along(operands[-2], width)
    alignment = width * element_bytes(element)

    def load(group: list[int]) -> Any:
        kind = register_vector(len(group), element)
        at = _last_plus(offsets, chosen[group[0]])
        return vector_d.load(kind, base, at, alignment=alignment if len(group) > 1 else None)

    out: list[Any] = [None] * layout.registers
    for group in register_groups(layout.registers, run):
        parts = [group] if uniform else [[r] for r in group]
        for part in parts:
            branch = scf_d.IfOp(mask[part[0]], [register_vector(len(part), element)], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf_d.yield_([load(part)])
            with ir.InsertionPoint(branch.else_block):
                scf_d.yield_([from_registers([other[r] for r in part])])
            for r, s in zip(part, registers_of(branch.results[0]), strict=True):
                out[r] = s
    k.values[result] = from_registers(out)


def scatter(k: Any, op: Any) -> None:
    """vector.scatter: one guarded store an element."""
    operands = list(op.operands)
    base, *offsets = [k.get(v) for v in operands[:-3]]
    layout = k.layout(operands[-1])
    chosen, mask, value = (registers_of(k.get(v)) for v in operands[-3:])

    def store_one(at: Any, scalar: Any) -> None:
        memref_d.store(scalar, base, _last_plus(offsets, at))

    def store() -> None:
        for i, m, v in zip(chosen, mask, value, strict=True):
            guarded(m, partial(store_one, i, v))

    guarded(k.code.first_copy(layout), store)


def _last_plus(offsets: list[Any], chosen: Any) -> list[Any]:
    if not isinstance(chosen.type, ir.IndexType):
        chosen = arith_d.index_cast(ir.IndexType.get(), chosen)
    return [*offsets[:-1], arith_d.addi(offsets[-1], chosen)]


def uniform_store(k: Any, op: Any) -> None:
    """memref.store of a scalar that is the same in the whole workgroup: one thread stores it."""
    def store() -> None:
        k.scalar(op)

    guarded(arith_d.cmpi(arith_d.CmpIPredicate.eq, k.code.thread, index(0)), store)
    gpu_d.barrier()

"""Per-thread loads and stores: transfers as the widest accesses the layout and alignment allow, gathers, scatters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from xcc._mlir import arith_d, gpu_d, ir, memref_d, scf_d, vector_d
from xcc.passes.gpu.access import Access, mask_layout, register_run
from xcc.passes.gpu.index_vectors import gather_run, same_along
from xcc.passes.gpu.layout import Layout
from xcc.passes.gpu.registers import (
    from_registers,
    guarded,
    index,
    register_groups,
    register_vector,
    registers_of,
    select_registers,
)
from xcc.passes.gpu.tile_ops import element_bytes

AsyncCopy = tuple[list[int], Any, list[Any], Any]   # registers, memref, indices, test or None


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
        for batch in k.pieces.batches(value, transfer.groups):
            held = [r for group in batch for r in group]
            piece = k.pieces.get(value, held)
            for group in batch:
                transfer.store(group, select_registers(piece, [held.index(r) for r in group]))

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

    def copy_async(self, buffer: Any, offsets: Layout, start: Any, test: Any = None) -> None:
        """Copies into shared memory `buffer` at `offsets` from `start` on; zeros where the mask or `test` is off."""
        def parts() -> list[AsyncCopy]:
            tests = [None if self.mask is None else self.mask[g[0]] for g in self.groups]
            apart = [self.distance(g[0]) for g in self.groups]
            if None in apart:
                return [(g, self.memref, self.indices(g[0]), t) for g, t in zip(self.groups, tests, strict=True)]
            view = self.view()
            return [(g, view, [index(n or 0)], t) for g, n, t in zip(self.groups, apart, tests, strict=True)]

        copy_async(self.k, parts, (buffer, offsets, start), self.width, self.access.bytes, test)

    def distance(self, register: int) -> int | None:
        """Elements from the one in the first register to the one in `register`; None where they are not known."""
        sizes = self.access.sizes
        total = 0
        for dim, memory in enumerate(self.access.dims):
            fixed = self.layout.at(register=register)[dim]
            if memory < 0 or not fixed:
                continue
            inner = sizes[memory + 1:]
            moving = [v[dim] for name in ("lane", "warp") for v in self.layout.basis(name)]
            if any(n < 0 for n in inner) or any(v & fixed for v in moving):
                return None
            total += fixed * prod(inner)
        return total if ir.MemRefType(self.memref.type).layout == ir.AffineMapAttr.get(
            ir.AffineMap.get_identity(len(sizes))) else None

    def view(self) -> Any:
        """The memory from the element in the first register on, in one dim: a thread's accesses differ by constants."""
        sizes = [memref_d.dim(self.memref, index(d)) if n < 0 else index(n) for d, n in enumerate(self.access.sizes)]
        at, count = index(0), index(1)
        for i, n in zip(self.indices(0), sizes, strict=True):
            at, count = arith_d.addi(arith_d.muli(at, n), i), arith_d.muli(count, n)
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.MemRefType(self.memref.type).element_type,
                                 layout=ir.StridedLayoutAttr.get(unknown, [1]))
        return ir.Operation.create("memref.reinterpret_cast", results=[kind], operands=[self.memref, at, count],
                                   attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([unknown]),
            "static_sizes": ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()]),
            "static_strides": ir.DenseI64ArrayAttr.get([1])}).results[0]

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


class Gather:
    """The memory accesses of one thread for a gather: one for each run of neighbours that lie together in memory."""

    def __init__(self, k: Any, op: Any) -> None:
        operands = list(op.operands)
        self.k, self.op, self.layout = k, op, k.layout(op.results[0])
        self.base, *self.offsets = [k.get(v) for v in operands[:-3]]
        self.chosen, self.mask, self.other = (registers_of(k.get(v)) for v in operands[-3:])
        self.element = ir.VectorType(op.results[0].type).element_type
        self.bytes = element_bytes(self.element)
        self.width, run = register_run(self.layout, gather_run(op, k.chip.vector_bytes))
        self.groups = register_groups(self.layout.registers, run)
        self.uniform = Gather.uniform_mask(op, self.width)

    @staticmethod
    def uniform_mask(op: Any, width: int) -> bool:
        """Whether the mask is all on or all off in each run of `width` elements."""
        return width == 1 or same_along(op.operands[len(op.operands) - 2], width)

    def indices(self, register: int) -> list[Any]:
        return _last_plus(self.offsets, self.chosen[register])

    def load(self) -> list[Any]:
        """The elements by register, each access behind its test."""
        out: list[Any] = [None] * self.layout.registers
        for group in self.groups:
            for part in [group] if self.uniform else [[r] for r in group]:
                kind = register_vector(len(part), self.element)
                branch = scf_d.IfOp(self.mask[part[0]], [kind], has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    aligned = len(part) * self.bytes if len(part) > 1 else None
                    scf_d.yield_([vector_d.load(kind, self.base, self.indices(part[0]), alignment=aligned)])
                with ir.InsertionPoint(branch.else_block):
                    scf_d.yield_([from_registers([self.other[r] for r in part])])
                for r, s in zip(part, registers_of(branch.results[0]), strict=True):
                    out[r] = s
        return out

    def copy_async(self, buffer: Any, offsets: Layout, start: Any, test: Any = None) -> None:
        """Copies into shared memory `buffer` at `offsets` from `start` on; zeros where the mask or `test` is off."""
        def parts() -> list[AsyncCopy]:
            return [(g, self.base, self.indices(g[0]), self.mask[g[0]]) for g in self.groups]

        copy_async(self.k, parts, (buffer, offsets, start), self.width, self.bytes, test)


def copy_async(k: Any, parts: Callable[[], list[AsyncCopy]], to: tuple[Any, Layout, Any], width: int, size: int,
               every: Any = None) -> None:
    """Asynchronous copies of `width` elements to (buffer, offsets, start) where `every` holds."""
    buffer, offsets, start = to
    token = ir.Type.parse("!nvgpu.device.async.token")
    attributes = {"dstElements": ir.IntegerAttr.get(ir.IndexType.get(), width)}
    if width * size == 16:
        attributes["bypassL1"] = ir.UnitAttr.get()

    def copy() -> None:
        for group, memref, indices, test in parts():
            at = k.code.offset_of(offsets, group[0], start=start)
            tests = [x for x in (every, test) if x is not None]
            limit = [arith_d.select(_all(tests), index(width), index(0))] if tests else []
            ir.Operation.create(
                "nvgpu.device_async_copy", results=[token], operands=[buffer, at, memref, *indices, *limit],
                attributes={**attributes,
                            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, len(indices), len(limit)])})

    guarded(k.code.first_copy(offsets), copy)


def reader(k: Any, op: Any) -> Transfer | Gather:
    """The accesses of a transfer_read or gather in its layout."""
    return Gather(k, op) if op.name == "vector.gather" else Transfer.of(k, op)


def gather(k: Any, op: Any) -> None:
    """vector.gather"""
    k.values[op.results[0]] = from_registers(Gather(k, op).load())


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

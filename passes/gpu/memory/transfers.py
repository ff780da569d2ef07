"""Per-thread loads and stores: transfers as the widest accesses the layout and alignment allow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir, memref_d, scf_d, vector_d
from xcc.passes.gpu.index.index_vectors import same_along
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, guarded, register_groups, registers_of
from xcc.passes.gpu.memory.access import Access, mask_layout
from xcc.passes.gpu.memory.async_copies import AsyncCopy, all_of, copy_async
from xcc.passes.shared.regions import either
from xcc.passes.shared.values import index, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

ONE_OF_COPIES = "xcc.one_of_copies"     # on a vector.store: other threads hold the same, and do not store it


def read(k: KernelBuilder, op: Operation) -> None:
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


class Transfer:
    """The memory accesses of one thread for a transfer op."""

    def __init__(self, k: KernelBuilder, op: Operation, access: Access, layout: Layout) -> None:
        self.k, self.access, self.layout = k, access, layout
        self.memref = k.get(access.memref)
        self.base = [k.get(v) for v in access.indices]
        self.width, run = access.run(layout)
        self.groups = register_groups(layout.registers, run)
        self.mask: list[Value] | None = None
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
    def of(k: KernelBuilder, op: Operation) -> Transfer:
        """The accesses of a transfer_read in its layout."""
        return Transfer(k, op, Access(op, k.chip.vector_bytes), k.layout(op.results[0]))

    @staticmethod
    def uniform_mask(op: Operation, width: int) -> bool:
        """Whether the mask of a transfer op is all on or all off in each access of `width` elements."""
        return width == 1 or same_along(op.operands[len(op.operands) - 1], width)

    def copy_async(self, buffer: Value, offsets: Layout, start: Value, test: Value | None = None) -> None:
        """Copies into shared memory `buffer` at `offsets` from `start` on; zeros where the mask or `test` is off."""
        def parts() -> list[AsyncCopy]:
            tests = [None if self.mask is None else self.mask[g[0]] for g in self.groups]
            apart = [self.distance(g[0]) for g in self.groups]
            if None in apart:
                return [(g, self.memref, self.indices(g[0]), t) for g, t in zip(self.groups, tests, strict=True)]
            view = self.view()
            return [(g, view, [index(n or 0)], t) for g, n, t in zip(self.groups, apart, tests, strict=True)]

        copy_async(self.k, parts, (buffer, offsets, start), self.width, self.access.bytes, test,
                   self.access.splits_sectors)

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

    def view(self, back: Callable[[Value], Value] | None = None) -> Value:
        """The memory from the element in the first register on, in one dim: a thread's accesses differ by constants.

        back: how many elements ahead of that one it begins, by its place.
        """
        sizes = [memref_d.dim(self.memref, index(d)) if n < 0 else index(n) for d, n in enumerate(self.access.sizes)]
        at, count = index(0), index(1)
        for i, n in zip(self.indices(0), sizes, strict=True):
            at, count = arith_d.addi(arith_d.muli(at, n), i), arith_d.muli(count, n)
        at = at if back is None else arith_d.subi(at, back(at))
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.MemRefType(self.memref.type).element_type,
                                 layout=ir.StridedLayoutAttr.get(unknown, [1]))
        return ir.Operation.create("memref.reinterpret_cast", results=[kind], operands=[self.memref, at, count],
                                   attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([unknown]),
            "static_sizes": ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()]),
            "static_strides": ir.DenseI64ArrayAttr.get([1])}).results[0]

    def indices(self, register: int) -> list[Value]:
        out = list(self.base)
        for dim, memory in enumerate(self.access.dims):
            if memory >= 0 and self.layout.shape[dim] > 1:
                out[memory] = arith_d.addi(out[memory], self.k.code.coordinate(self.layout, register, dim))
        return out

    def load(self, group: list[int], element: Type, padding: Value) -> Value:
        kind = vec(len(group), element)

        def plain() -> Value:
            return vector_d.load(kind, self.memref, self.indices(group[0]), alignment=self.width * self.access.bytes)

        if self.mask is None:
            return plain()
        whole = self.mask[group[0]] if self.uniform else all_of([self.mask[r] for r in group])
        return either(whole, kind, plain, lambda: vector_d.broadcast(kind, padding) if self.uniform else from_registers(
            [self._load_one(r, element, padding) for r in group]))

    def _load_one(self, register: int, element: Type, padding: Value) -> Value:
        assert self.mask is not None
        return either(self.mask[register], element, lambda: memref_d.load(self.memref, self.indices(register)),
                      lambda: padding)

    def _store_one(self, register: int, scalar: Value) -> None:
        memref_d.store(scalar, self.memref, self.indices(register))

    def store(self, group: list[int], piece: Value) -> None:
        def plain() -> None:
            store = vector_d.store(piece, self.memref, self.indices(group[0]), alignment=self.width * self.access.bytes)
            if any(self.layout.copies(part) for part in ("lane", "warp")):
                store.operation.attributes[ONE_OF_COPIES] = ir.UnitAttr.get()

        if self.mask is None:
            plain()
            return
        whole = self.mask[group[0]] if self.uniform else all_of([self.mask[r] for r in group])
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


def uniform_store(k: KernelBuilder, op: Operation) -> None:
    """memref.store of a scalar that is the same in the whole workgroup: one thread stores it."""
    def store() -> None:
        k.scalar(op)

    guarded(arith_d.cmpi(arith_d.CmpIPredicate.eq, k.code.thread, index(0)), store)
    k.code.memory_barrier()

"""Buffers of tile programs: their types, views of them, and requests for what will be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xcc import symbolic
from xcc._mlir import Type, Value, ir
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import Axis, Ix
from xcc.passes.linalg.kernel.kernel import Tensor
from xcc.symbolic import Dim

LINE_BYTES = 64
DYNAMIC = ir.ShapedType.get_dynamic_size()


def storage_type(element: Type) -> Type:
    """How an element lies in memory: i1 as i8."""
    is_bool = isinstance(element, ir.IntegerType) and ir.IntegerType(element).width == 1
    return ir.IntegerType.get_signless(8) if is_bool else element


def memref_type(dims: Sequence[Dim], element: Type) -> Type:
    """The type of the buffer of a tensor."""
    return ir.MemRefType.get([d if isinstance(d, int) else DYNAMIC for d in dims], storage_type(element))


class Views:
    """Views of buffers, and offsets in them."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder

    def flattened(self, memref: Value, t: Tensor, indices: Sequence[Ix]) -> tuple[Value, Tensor, Sequence[Ix]]:
        """A view in which dims that are walked as one are one."""
        walks = _walks(t.dims, indices)
        if all(last - first == 1 for first, last in walks):
            return memref, t, indices
        dims = tuple(symbolic.product(t.dims[first:last]) for first, last in walks)
        key = ("view", memref, dims)
        view = self.b.recall(key)
        if view is None:
            strides = [symbolic.product(dims[d + 1:]) for d in range(len(dims))]
            view = self.b.remember(key, self.view(memref, self.b.int(0), dims, strides,
                                                   ir.MemRefType(memref.type).element_type))
        return view, replace(t, dims=dims), merged(t.dims, indices)

    def view(self, memref: Value, offset: Value, sizes: Sequence[Dim], strides: Sequence[Dim], element: Type) -> Value:
        """The elements of `memref` from `offset` on, `strides` apart along the dims."""
        static_offset = self.b.as_int(offset)
        static_sizes = [d if isinstance(d, int) else DYNAMIC for d in sizes]
        static_strides = [d if isinstance(d, int) else DYNAMIC for d in strides]
        stride_or_offset = ir.ShapedType.get_dynamic_stride_or_offset()
        layout = ir.StridedLayoutAttr.get(
            stride_or_offset if static_offset is None else static_offset,
            [s if s != DYNAMIC else stride_or_offset for s in static_strides])
        kind = ir.MemRefType.get(static_sizes, element, layout=layout)
        offsets = [offset] if static_offset is None else []
        dynamic_sizes = [self.b.dim(d) for d in sizes if not isinstance(d, int)]
        dynamic_strides = [self.b.dim(d) for d in strides if not isinstance(d, int)]
        return ir.Operation.create("memref.reinterpret_cast", results=[kind],
                                   operands=[memref, *offsets, *dynamic_sizes, *dynamic_strides], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                [1, len(offsets), len(dynamic_sizes), len(dynamic_strides)]),
            "static_offsets": ir.DenseI64ArrayAttr.get([DYNAMIC if static_offset is None else static_offset]),
            "static_sizes": ir.DenseI64ArrayAttr.get(static_sizes),
            "static_strides": ir.DenseI64ArrayAttr.get(static_strides)}).results[0]

    def flat(self, memref: Value, dims: Sequence[Dim], element: Type) -> Value:
        """The buffer of shape `dims` as one dim."""
        key = ("flat", memref)
        found = self.b.recall(key)
        if found is not None:
            return found
        return self.b.remember(key, self.view(memref, self.b.int(0), [symbolic.product(dims)], [1], element))

    def flat_index(self, t: Tensor, indices: Sequence[Ix]) -> Ix:
        """The index into the buffer of `t` as one dim."""
        total = Ix()
        for i, s in zip(indices, self.strides(t), strict=True):
            part = self.b.ix_scale(i, s) if isinstance(s, int) else \
                self.b.ix_vector("arith.muli", i, self.b.ix_of(self.b.dim(s))) if not i.is_const(0) else i
            total = self.b.ix_add(total, part)
        return total

    @staticmethod
    def strides(t: Tensor) -> list[Dim]:
        """Elements between neighbours along each dim."""
        return [symbolic.product(t.dims[d + 1:]) for d in range(len(t.dims))]

    def offset(self, t: Tensor, indices: Sequence[Ix]) -> Value:
        """The position of the first element at `indices` in the buffer of `t`."""
        total = self.b.int(0)
        for i, s in zip(indices, self.strides(t), strict=True):
            total = self.b.add(total, self.b.mul(self.b.scalar(i), self.b.dim(s)))
        return total


def prefetch(memref: Value, at: Sequence[Value], write: bool = False, locality: int = 3) -> None:
    """Asks for the line of the element `at`, for writing too; `locality`: 3 into the first cache, less not so near."""
    ir.Operation.create("memref.prefetch", operands=[memref, *at], attributes={
        "isWrite": ir.BoolAttr.get(write), "isDataCache": ir.BoolAttr.get(True),
        "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), locality)})


def _walks(dims: Sequence[Dim], indices: Sequence[Ix]) -> list[tuple[int, int]]:
    """The ranges of dims that one walk covers, in order; a dim that is no part of one is a range of its own."""
    out, d = [], 0
    while d < len(indices):
        part = indices[d].part
        count = 1
        if part is not None and part[1] == 0:
            flat, n = part[0], len(part[0].sizes)
            whole = [(flat, k) for k in range(n)]
            if [i.part for i in indices[d:d + n]] == whole and tuple(dims[d:d + n]) == flat.sizes:
                count = n
        out.append((d, d + count))
        d += count
    return out


def merged(dims: Sequence[Dim], indices: Sequence[Ix]) -> list[Ix]:
    """The indices with each walk over several dims as one."""
    return [indices[first] if last - first == 1 else indices[first].part[0].index  # type: ignore[index]
            for first, last in _walks(dims, indices)]


def plain(indices: Sequence[Ix]) -> bool:
    """Whether every index is a scalar or walks an axis of its own by ones."""
    seen: set[Axis] = set()
    for i in indices:
        if i.vec is not None or len(i.coefs) > 1:
            return False
        for axis, c in i.coefs:
            if c != 1 or axis in seen:
                return False
            seen.add(axis)
    return True

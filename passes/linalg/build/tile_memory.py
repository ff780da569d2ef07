"""Reads and writes of tiles: which vector op serves which access.

A tile whose every dim walks at most one axis by ones is a transfer; an affine walk with strides is a transfer on a
strided view; the rest is read row by row (CPU) or gathered by index vectors (GPU).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xcc._mlir import Module, Type, Value, ir, owner_op, vector_d
from xcc.dialects.xt.fields import decode_dense
from xcc.passes.linalg.build.buffers import LINE_BYTES, Views, memref_type, merged, plain, prefetch, storage_type
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Ix, V
from xcc.passes.linalg.kernel.kernel import Tensor
from xcc.passes.shared.attributes import INSIDE
from xcc.passes.shared.regions import either
from xcc.passes.shared.values import scalar_attr
from xcc.symbolic import Dim

MAX_ROWS = 64
_LESS, _GREATER = 2, 4      # arith.cmpi's slt and sgt


class Memory:
    """Loads from and stores to the memrefs of a kernel's arguments and constant tables."""

    def __init__(self, builder: Builder, module: Module, access: str) -> None:
        self.b = builder
        self.views = Views(builder)
        self.module = module
        self.access = access
        self.buffers: dict[Tensor, Value] = {}
        self.moved: dict[Tensor, tuple[Value, tuple[Value, ...]]] = {}     # copies of a part, and where it begins

    def bind(self, t: Tensor, memref: Value) -> None:
        self.buffers[t] = memref

    def _buffer(self, t: Tensor) -> Value:
        if t not in self.buffers:
            self.buffers[t] = self._global(t)
        return self.buffers[t]

    def _global(self, t: Tensor) -> Any:
        """A constant table becomes a private global."""
        attr = t.constant
        kind = memref_type(t.dims, t.element)
        stored = ir.RankedTensorType.get(list(kind.shape), kind.element_type)
        if attr.type != stored:         # of bools, or with dims of 1
            values = decode_dense(attr).astype(float if isinstance(t.element, ir.FloatType) else int).ravel()
            attr = ir.DenseElementsAttr.get([scalar_attr(stored.element_type, v.item()) for v in values], stored)
        name = f"__table_{len(list(self.module.body.operations))}"
        with ir.InsertionPoint.at_block_begin(self.module.body):
            ir.Operation.create("memref.global", attributes={
                "sym_name": ir.StringAttr.get(name), "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(kind), "initial_value": attr, "constant": ir.UnitAttr.get()})
        with ir.InsertionPoint.at_block_begin(self.b.entry):
            return self.b.op("memref.get_global", kind, [], name=ir.FlatSymbolRefAttr.get(name))

    # reading -----------------------------------------------------------------------------------------------------
    def load(self, t: Tensor, indices: Sequence[Ix], guard: V | None = None, inside: bool = False) -> V:
        """The tile of a buffer at `indices`; lanes past an axis's limit, and those outside `guard`, read as 0.
        inside: the indices of all of a gather's lanes lie in memory; what lanes past a limit of the tile read is
        anything then."""
        if t in self.moved:
            memref, begin = self.moved[t]
            indices = [Ix(self.b.sub(self.b.scalar(i), at), 0, i.coefs) for i, at in zip(indices, begin, strict=True)]
            v = self._load_stored(memref, replace(t, dims=tuple(ir.MemRefType(memref.type).shape)), indices, guard)
        else:
            v = self._load_stored(self._buffer(t), t, indices, guard, inside)
        if storage_type(t.element) != t.element:
            return self.b.elementwise("arith.trunci", t.element, [v], {})
        return v

    def load_where(self, t: Tensor, indices: Sequence[Ix], test: V, other: V, everywhere: Value | None) -> V:
        """The tile of a buffer along the walk of its last index where `test` holds, `other`, a number, elsewhere.
        everywhere: whether that is all of the tile, None where nobody knows: it is read without a mask then."""
        walk, *_ = indices[-1].walk or (indices[-1],)
        (lane, _), = walk.coefs
        memref = self._buffer(t)
        element = ir.MemRefType(memref.type).element_type
        at = self.b.add(self.views.offset(t, [*indices[:-1], Ix()]), self.b.scalar(walk))
        flat, mask = self.views.flat(memref, t.dims, element), self.b.broadcast(test, (lane,)).value
        kind, row = ir.VectorType.get([lane.size], element), ir.AffineMapAttr.get(ir.AffineMap.get_identity(1))

        def read(mask: Value | None) -> Value:
            return vector_d.TransferReadOp(kind, flat, [at], row, other.value,
                                           ir.ArrayAttr.get([ir.BoolAttr.get(True)]), mask=mask).result

        value = read(mask) if everywhere is None else either(everywhere, kind, lambda: read(None), lambda: read(mask))
        return V(value, (lane,))

    def flat_argument(self, t: Tensor) -> Value:
        """The buffer of `t` as one dim."""
        memref = self._buffer(t)
        return self.views.flat(memref, t.dims, ir.MemRefType(memref.type).element_type)

    def load_from(self, memref: Value, indices: Sequence[Ix]) -> V:
        """The tile of a result's buffer, read back as it was stored."""
        return self._transfer(memref, indices, ir.MemRefType(memref.type).element_type)

    def gathers(self, t: Tensor, indices: Sequence[Ix]) -> bool:
        """Whether a read of `t` at `indices` is by index vectors."""
        return self.access == "gather" and any(i.axes for i in indices) and not plain(merged(t.dims, indices))

    def _load_stored(self, memref: Value, t: Tensor, indices: Sequence[Ix], guard: V | None, inside: bool = False) -> V:
        element = ir.MemRefType(memref.type).element_type
        if guard is not None:
            return self._gather(memref, t, indices, element, guard, inside)
        if plain(merged(t.dims, indices)):
            memref, t, indices = self.views.flattened(memref, t, indices)
        axes = tuple(dict.fromkeys(a for i in indices for a in i.axes))
        if not axes:
            return V(self.b.op("memref.load", element, [memref, *(self.b.scalar(i) for i in indices)]))
        if plain(indices):
            return self._transfer(memref, indices, element)
        if all(i.vec is None for i in indices) and self.access == "rows":
            return self._strided(memref, t, indices, axes, element)
        if self.access == "rows":
            if indices[-1].walk is not None and all(i.is_scalar for i in indices[:-1]):
                clamped = self._clamped(memref, t, indices, element)
                if clamped is not None:
                    return clamped
            rows = self._rows(memref, t, indices, element)
            if rows is not None:
                return rows
        return self._gather(memref, t, indices, element, guard, inside)

    def _transfer(self, memref: Value, indices: Sequence[Ix], element: Type, *, sized: bool = True) -> V:
        """sized: the memory is as large as its type says; a tile's own view may go past the end."""
        axes = tuple(i.coefs[0][0] for i in indices if i.coefs)
        dims = [d for d, i in enumerate(indices) if i.coefs]
        shape = ir.VectorType.get([a.size for a in axes], element)
        permutation = ir.AffineMap.get(len(indices), 0, [ir.AffineDimExpr.get(d) for d in dims])
        sizes = ir.MemRefType(memref.type).shape
        mask = self.b.mask(tuple(replace(a, limit=None) if sized and _is_whole(indices[d], sizes[d]) else a
                                 for a, d in zip(axes, dims, strict=True)))
        pad = self.b.constant(scalar_attr(element, 0), element)
        read = vector_d.TransferReadOp(
            shape, memref, [self.b.scalar(i) for i in indices], ir.AffineMapAttr.get(permutation), pad,
            ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(axes)), mask=None if mask is None else mask.value)
        return V(read.result, axes)

    def _strided(self, memref: Value, t: Tensor, indices: Sequence[Ix], axes: tuple[Axis, ...], element: Type) -> V:
        """An affine walk: a view with one dim an axis, read whole."""
        steps: dict[Axis, Dim] = dict.fromkeys(axes, 0)
        for i, s in zip(indices, self.views.strides(t), strict=True):
            for axis, c in i.coefs:
                steps[axis] = steps[axis] + s * c
        offset = self.views.offset(t, indices)
        view = self.views.view(memref, offset, [a.size for a in axes], [steps[a] for a in axes], element)
        zero = [Ix(coefs=((a, 1),)) for a in axes]
        return self._transfer(view, zero, element, sized=False)

    def _rows(self, memref: Value, t: Tensor, indices: Sequence[Ix], element: Type) -> V | None:
        """Contiguous in the last dim, anything in the others: one 1-D read a row. None when it does not fit."""
        last = indices[-1]
        if last.vec is not None or len(last.coefs) != 1 or last.coefs[0][1] != 1:
            return None
        lane = last.coefs[0][0]
        outer = self.views.flat_index(t, [*indices[:-1], Ix()])
        rows = outer.axes
        count = 1
        for a in rows:
            count *= a.size
        if lane in rows or count > MAX_ROWS or any(a.limit is not None for a in rows):
            return None
        offsets = self.b.vector(outer)
        flat = self.views.flat(memref, t.dims, element)
        shape = ir.VectorType.get([*(a.size for a in rows), lane.size], element)
        out = self.b.splat(scalar_attr(element, 0), list(shape.shape))
        base = self.b.scalar(last)
        for n in range(count):
            position = _unravel(n, [a.size for a in rows])
            offset = self.b.op("vector.extract", self.b.index, [offsets.value],
                               static_position=ir.DenseI64ArrayAttr.get(position))
            row = self._transfer(flat, [Ix(base=self.b.add(offset, base), coefs=((lane, 1),))], element)
            out = self.b.op("vector.insert", shape, [row.value, out],
                            static_position=ir.DenseI64ArrayAttr.get(position))
        return V(out, (*rows, lane))

    def _clamped(self, memref: Value, t: Tensor, indices: Sequence[Ix], element: Type) -> V | None:
        """A walk along the last dim that is clamped to [low, high]: a masked read, the end's element elsewhere."""
        assert indices[-1].walk is not None
        walk, low, high = indices[-1].walk
        if low is None or high is None:
            return None
        (lane, _), = walk.coefs
        flat = self.views.flat(memref, t.dims, element)
        row = self.views.offset(t, [*indices[:-1], Ix()])
        high = self.b.binary("arith.maxsi", high, low)

        def end(at: Value) -> Value:
            return self.b.op("memref.load", element, [flat, self.b.add(row, at)])

        lanes = self.b.vector(walk)
        kind, bits = ir.VectorType.get([lane.size], element), ir.VectorType.get([lane.size], self.b.i1)
        below, above = (self._compare(lanes, bound, predicate) for bound, predicate in ((low, _LESS), (high, _GREATER)))
        outside = self.b.pure("arith.ori", bits, [below, above])
        inside = self.b.pure("arith.xori", bits, [
            outside, self.b.splat(ir.IntegerAttr.get(self.b.i1, 1), [lane.size])])
        read = vector_d.TransferReadOp(
            kind, flat, [self.b.add(row, self.b.scalar(walk))],
            ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)), end(high),
            ir.ArrayAttr.get([ir.BoolAttr.get(True)]), mask=inside)
        first = self.b.broadcast(V(end(low)), lanes.axes)
        return V(self.b.op("arith.select", kind, [below, first.value, read.result]), lanes.axes)

    def _compare(self, lanes: V, bound: Value, predicate: int) -> Value:
        """`lanes` against a scalar, as a mask."""
        bits = ir.VectorType.get([a.size for a in lanes.axes], self.b.i1)
        return self.b.pure("arith.cmpi", bits, [lanes.value, self.b.broadcast(V(bound), lanes.axes).value],
                           predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate))

    def _gather(self, memref: Value, t: Tensor, indices: Sequence[Ix], element: Type, guard: V | None,
                inside: bool) -> V:
        index = self.b.vector(self.views.flat_index(t, indices))
        if guard is not None:
            index = self.b.align([index, guard])[0]
        shape = [a.size for a in index.axes]
        flat = self.views.flat(memref, t.dims, element)
        limited = tuple(a for a in index.axes if a.limit is not None and (a.order >= REDUCTION_ORDER or not inside))
        mask = self.b.mask(index.axes) if limited else None
        if guard is not None:
            chosen = self.b.broadcast(guard, index.axes)
            mask = chosen if mask is None else self.b.elementwise("arith.andi", self.b.i1, [chosen, mask], {})
        ones = ir.IntegerAttr.get(self.b.i1, 1)
        lanes = self.b.splat(ones, shape) if mask is None else mask.value
        kind = ir.VectorType.get(shape, element)
        value = self.b.op("vector.gather", kind,
                          [flat, self.b.int(0), index.value, lanes, self.b.splat(scalar_attr(element, 0), shape)])
        if inside:
            owner_op(value).attributes[INSIDE] = ir.UnitAttr.get()
        return V(value, index.axes)

    def prefetch(self, t: Tensor, outer: Sequence[Value], lane: Ix) -> None:
        """Asks for the elements that `lane` walks at `outer`, which may lie behind the buffer's end."""
        step = LINE_BYTES // max(1, t.element.width // 8)
        for n in range(0, lane.coefs[0][0].size if lane.coefs else 1, step):
            prefetch(self._buffer(t), [*outer, self.b.add(self.b.scalar(lane), self.b.int(n))])

    def fetch(self, t: Tensor, indices: Sequence[Ix], ahead: int) -> None:
        """Asks for what lies `ahead` elements behind the tile at `indices`, perhaps behind the buffer's end."""
        memref, walked, at = self.views.flattened(self._buffer(t), t, indices)
        lanes = at[-1]
        if not plain(at) or any(i.axes for i in at[:-1]) or not lanes.axes:
            return
        element = ir.MemRefType(memref.type).element_type
        flat = self.views.flat(memref, walked.dims, element)
        start = self.b.add(self.views.offset(walked, at), self.b.int(ahead))
        for n in range(0, lanes.axes[0].size, max(1, LINE_BYTES * 8 // element.width)):
            prefetch(flat, [self.b.add(start, self.b.int(n))])

    # writing -----------------------------------------------------------------------------------------------------
    def store(self, t: Tensor, memref: Value, value: V, indices: Sequence[Ix], stream: bool = False) -> None:
        """Writes a tile; every index is a scalar or one axis by ones. `stream`: past the caches."""
        element = storage_type(t.element)
        if element != t.element:
            value = self.b.elementwise("arith.extui", element, [value], {})
        memref, _, indices = self.views.flattened(memref, t, indices)
        axes = tuple(i.coefs[0][0] for i in indices if i.coefs)
        at = [self.b.scalar(i) for i in indices]
        if not axes:
            ir.Operation.create("memref.store", operands=[value.value, memref, *at])
            return
        value = self.b.broadcast(value, axes)
        dims = [d for d, i in enumerate(indices) if i.coefs]
        permutation = ir.AffineMap.get(len(indices), 0, [ir.AffineDimExpr.get(d) for d in dims])
        mask = self.b.mask(axes)
        write = vector_d.TransferWriteOp(
            None, value.value, memref, at, ir.AffineMapAttr.get(permutation),
            ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(axes)), mask=None if mask is None else mask.value)
        if stream and mask is None:
            write.operation.attributes["xcc.stream"] = ir.UnitAttr.get()


def _is_whole(i: Ix, size: int) -> bool:
    """Whether `i` walks all of a dim of memory, as a panel's columns: lanes past a result's end read what is there."""
    (axis, step), *others = i.coefs
    return not others and step == 1 and i.base is None and i.const == 0 and axis.size == size \
        and axis.order < REDUCTION_ORDER


def _unravel(n: int, shape: Sequence[int]) -> list[int]:
    out: list[int] = []
    for s in reversed(shape):
        out.append(n % s)
        n //= s
    return out[::-1]

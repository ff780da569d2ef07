"""Results that are stored with a border: tiles go to an offset of a larger buffer, and a constant around them.

A merged dim of the result (rows and columns of an image walked as one) has gaps in the larger buffer: element i of a
dim made of [H, W] lies at ``i * stride + (i floordiv W) * gap``. Tiles are written row by row.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xcc import symbolic
from xcc._mlir import Value, ir, vector_d
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.kernel.kernel import Border, Tensor
from xcc.passes.shared.regions import for_loop, when
from xcc.passes.shared.values import predicate
from xcc.symbolic import Dim

FILL_LANES = 32


class BorderedResult:
    """Result `t` in the buffer `memref`, with `border` around it."""

    def __init__(self, memory: Memory, t: Tensor, memref: Value, border: Border) -> None:
        assert border.value is not None
        self.memory, self.b, self.t, self.border, self.value = memory, memory.b, t, border, border.value
        self.element = ir.MemRefType(memref.type).element_type
        self.memref = memref
        padded = border.padded
        self.strides: list[Dim] = [symbolic.product(padded[d + 1:]) for d in range(len(padded))]
        self.origin = sum((lo * s for lo, s in zip(border.low, self.strides, strict=True)), start=0)

    @property
    def flat(self) -> Value:
        return self.memory.views.flat(self.memref, self.border.padded, self.element)

    @property
    def contiguous(self) -> bool:
        """Whether neighbours along the result's last dim are neighbours in the buffer."""
        return self.strides[self.t.groups[-1][-1]] == 1

    # tiles -------------------------------------------------------------------------------------------------------
    def store(self, value: V, indices: Sequence[Ix]) -> None:
        """Writes a tile; `indices` walk the result's own dims."""
        b = self.b
        if self.element != self.t.element:
            value = b.elementwise("arith.extui", self.element, [value], {})
        lane = indices[-1].coefs[0][0] if indices and _by_ones(indices[-1]) and self.contiguous else None
        rows = tuple(a for i in indices for a in i.axes if a is not lane)
        value = b.broadcast(value, (*rows, lane) if lane is not None else rows)
        walks = [_Walk(self, j, i) for j, i in enumerate(indices)]
        for at in itertools.product(*(range(a.size) for a in rows)):
            position = dict(zip(rows, at, strict=True))
            offset = b.dim(self.origin)
            for walk in walks:
                offset = b.add(offset, walk.offset(position))
            part = value.value
            if at:
                kind = ir.VectorType.get([lane.size], self.element) if lane is not None else self.element
                part = b.op("vector.extract", kind, [part], static_position=ir.DenseI64ArrayAttr.get(list(at)))
            self._write(part, offset, self._valid(position), lane)

    def _valid(self, position: dict[Axis, int]) -> Value | None:
        """Whether the row at `position` is within the limits of its axes; None: always."""
        b, valid = self.b, None
        for axis, n in position.items():
            if axis.limit is not None and n:
                inside = self.compare("ult", b.int(n), axis.limit)
                valid = inside if valid is None else b.pure("arith.andi", b.i1, [valid, inside])
        return valid

    def compare(self, how: str, x: Value, y: Value) -> Value:
        return self.b.pure("arith.cmpi", self.b.i1, [x, y], predicate=predicate(how))

    def _write(self, part: Value, offset: Value, valid: Value | None, lane: Axis | None) -> None:
        b = self.b
        if lane is None:
            if valid is None:
                ir.Operation.create("memref.store", operands=[part, self.flat, offset])
                return
            with when(valid), b.scope():
                ir.Operation.create("memref.store", operands=[part, self.flat, offset])
            return
        if valid is not None:
            limit = b.int(lane.size) if lane.limit is None else lane.limit
            lane = Axis(lane.size, lane.order, b.pure("arith.select", b.index, [valid, limit, b.int(0)]))
        self._transfer(part, offset, lane)

    def _transfer(self, part: Value, offset: Value, lane: Axis) -> None:
        mask = self.b.mask((lane,))
        vector_d.TransferWriteOp(
            None, part, self.flat, [offset], ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)),
            ir.ArrayAttr.get([ir.BoolAttr.get(True)]), mask=None if mask is None else mask.value)

    # the border --------------------------------------------------------------------------------------------------
    def fill(self) -> None:
        """Writes the border: for each dim the elements before and behind, within the result's range of outer dims."""
        border = self.border
        for d in range(len(border.dims)):
            for start, count in ((0, border.low[d]), (border.low[d] + border.dims[d], border.high[d])):
                if count:
                    self._runs(d, 0, self.b.dim(start * self.strides[d]), count * self.strides[d])

    def _runs(self, d: int, outer: int, offset: Value, count: Dim) -> None:
        """`count` elements from `offset` on, for every coordinate of the dims from `outer` up to `d`."""
        b, border = self.b, self.border
        if outer == d:
            self._run(offset, count)
            return
        size, low = border.dims[outer], border.low[outer]
        first = b.add(offset, b.dim(low * self.strides[outer]))
        if size == 1:
            self._runs(d, outer + 1, first, count)
            return
        with for_loop(b.int(0), b.dim(size), b.int(1)) as i, b.scope():
            self._runs(d, outer + 1, b.add(first, b.mul(i, b.dim(self.strides[outer]))), count)

    def _run(self, offset: Value, count: Dim) -> None:
        b = self.b
        fill = b.splat(self.value, [FILL_LANES])
        whole = b.dim(count - symbolic.mod(count, FILL_LANES))

        if b.as_int(whole) != 0:
            with for_loop(b.int(0), whole, b.int(FILL_LANES)) as i, b.scope():
                self._transfer(fill, b.add(offset, i), Axis(FILL_LANES, 0))
        if symbolic.mod(count, FILL_LANES) != 0:
            self._transfer(fill, b.add(offset, whole), Axis(FILL_LANES, 0, b.sub(b.dim(count), whole)))


class _Walk:
    """The part of a flat offset that dim `j` of a result adds, at index `i` and a position of the row axes."""

    def __init__(self, place: BorderedResult, j: int, i: Ix) -> None:
        self.place, self.b, self.index = place, place.b, i
        group, dims, strides = place.t.groups[j], place.border.dims, place.strides
        self.stride = strides[group[-1]]
        self.gaps: list[tuple[Dim, Dim]] = []       # (elements between gaps, size of a gap)
        for n in range(1, len(group)):
            gap = strides[group[n - 1]] - dims[group[n]] * strides[group[n]]
            if gap != 0:
                self.gaps.append((symbolic.product([dims[d] for d in group[n:]]), gap))
        self.counted: dict[tuple[Dim, int], tuple[Value, Value]] = {}

    def offset(self, position: dict[Axis, int]) -> Value:
        b = self.b
        at = self._scalar(position)
        total = b.mul(at, b.dim(self.stride))
        for every, gap in self.gaps:
            total = b.add(total, b.mul(self._passed(every, position, at), b.dim(gap)))
        return total

    def _scalar(self, position: dict[Axis, int]) -> Value:
        """The index at `position`; the lane axis counts as 0."""
        b, i = self.b, self.index
        if i.vec is not None:
            return b.op("vector.extract", b.index, [i.vec.value], static_position=ir.DenseI64ArrayAttr.get(
                [position.get(a, 0) for a in i.vec.axes]))
        return b.add(b.scalar(i), b.int(sum(c * position.get(a, 0) for a, c in i.coefs)))

    def _passed(self, every: Dim, position: dict[Axis, int], at: Value) -> Value:
        """``at floordiv every``: one division for a walk by ones, then counted."""
        i = self.index
        n = position.get(i.coefs[0][0], 0) if _by_ones(i) else 0
        if not _by_ones(i) or (every, n) not in self.counted and n == 0:
            self.counted[every, 0] = self._divided(at, every)
        elif (every, n) not in self.counted:
            self.counted[every, n] = self._next(*self.counted[every, n - 1], every)
        return self.counted[every, n][0]

    def _divided(self, at: Value, every: Dim) -> tuple[Value, Value]:
        b, by = self.b, self.b.dim(every)
        quotient = b.binary("arith.divui", at, by)
        return quotient, b.sub(at, b.mul(quotient, by))

    def _next(self, quotient: Value, rest: Value, every: Dim) -> tuple[Value, Value]:
        b = self.b
        known = [b.as_int(v) for v in (quotient, rest)]
        if isinstance(every, int) and known[0] is not None and known[1] is not None:
            wraps = known[1] + 1 == every
            return b.int(known[0] + wraps), b.int(0 if wraps else known[1] + 1)
        more = b.add(rest, b.int(1))
        wrap = self.place.compare("eq", more, b.dim(every))
        return (b.pure("arith.select", b.index, [wrap, b.add(quotient, b.int(1)), quotient]),
                b.pure("arith.select", b.index, [wrap, b.int(0), more]))


def _by_ones(i: Ix) -> bool:
    """Whether `i` walks one axis by ones."""
    return i.vec is None and len(i.coefs) == 1 and i.coefs[0][1] == 1

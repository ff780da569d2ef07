"""The tile program of combine_columns on GPUs: a workgroup keeps some columns, or a range of their places, in shared
memory and combines the updates there.

    scf.forall (%a, %r, %c) = (0, 0, 0) to (%before, %places, %after) step (1, 4096, 8) {
      %held = memref.alloc() : memref<32800xf32, #gpu.address_space<workgroup>>
      scf.for ... { x's tile to %held }
      scf.for ... {
        %i, %u = indices and updates of 512 rows, read a step ahead
        "tile.accumulate"(%held, %i, %u) {kind = "sum", limit = 4096, stride = 4100} }
      scf.for ... { %held to the result's tile } }

Columns lie along the last dim, or along the first where that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import Attribute, Type, Value, arith_d, ir, scf_d
from xcc.dialects import tile
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.regions import for_loop
from xcc.passes.xt_to_linalg.build.registry import converts_to_tiles
from xcc.passes.xt_to_linalg.build.types import constant, is_unsigned, stored, to_i32
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel
from xcc.symbolic import ceildiv

KINDS = {"add": "sum", "mul": "prod", "none": "last"}
THREADS = 256
STEP = 512          # updates of a column that are read at once
MOVED = 1024        # places
APART = 16          # bytes between columns in shared memory beside their places: columns lie in banks of their own


class _Columns:
    """Emits the body of a workgroup: tiles are vectors [places or updates, columns]."""

    def __init__(self, k: LoopKernel) -> None:
        self.k = k
        self.x, self.indices, self.updates = k.inputs
        self.columns, self.held = k.op.attr("columns"), k.op.attr("held")
        before, places, after = self.x.dims
        assert isinstance(before, int) and isinstance(places, int) and isinstance(after, int)
        self.along = 2 if after > 1 else 0          # the dim of columns
        self.places, self.count = places, self.updates.dims[1]
        self.element = stored(self.x.dtype)
        self.stride = self.held + max(1, APART * 8 // self.element.width)
        self.memory: Any = None
        self.at: list[Any] = []

    def emit(self) -> None:
        before, places, after = self.x.dims
        steps = [1 if self.along else self.columns, self.held, self.columns if self.along else 1]
        i64s, i32s = ir.DenseI64ArrayAttr.get, ir.DenseI32ArrayAttr.get
        loop = ir.Operation.create("scf.forall", regions=1, attributes={
            "operandSegmentSizes": i32s([0, 0, 0, 0]), "staticLowerBound": i64s([0, 0, 0]),
            "staticUpperBound": i64s([before, places, after]), "staticStep": i64s(steps)})
        block = loop.regions[0].blocks.append(*[ir.IndexType.get()] * 3)
        with ir.InsertionPoint(block):
            self.at = list(block.arguments)
            self._body()
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()

    def _body(self) -> None:
        kind = ir.MemRefType.get([self.columns * self.stride], self.element,
                                 memory_space=ir.Attribute.parse("#gpu.address_space<workgroup>"))
        self.memory = ir.Operation.create("memref.alloc", results=[kind], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}).result
        rows = min(MOVED, self.held)
        self._each(self.held, rows, lambda p: self._scatter(self._read(self.x, self._place(p), rows), p, rows))
        ir.Operation.create("gpu.barrier")
        self._combine()
        ir.Operation.create("gpu.barrier")
        self._each(self.held, rows, lambda p: self._write(self._gather(p, rows), self._place(p), rows))

    def _each(self, extent: int, step: int, body: Callable[[Value], None]) -> None:
        if extent == step:
            body(self.k.dim(0))
            return
        with for_loop(self.k.dim(0), self.k.dim(extent), self.k.dim(step)) as i:
            body(i)

    def _place(self, inside: Value) -> Value:
        return arith_d.addi(self.at[1], inside)

    def _combine(self) -> None:
        k, rows = self.k, min(STEP, pow2_above(self.count)) if isinstance(self.count, int) else STEP
        last = k.dim((ceildiv(self.count, rows) - 1) * rows)

        def load(first: Value) -> list[Value]:
            return [self._read(b, first, rows) for b in (self.indices, self.updates)]

        steps = scf_d.ForOp(k.dim(0), k.dim(self.count), k.dim(rows), load(k.dim(0)))
        with ir.InsertionPoint(steps.body):
            first, (index, update) = steps.induction_variable, list(steps.inner_iter_args)
            ahead = load(arith_d.minui(arith_d.addi(first, k.dim(rows)), last))
            self._accumulate(self._local(index, first, rows), update)
            scf_d.YieldOp(ahead)

    def _accumulate(self, index: Value, update: Value) -> None:
        kind = self.k.op.attr("reduction")
        if kind in ("max", "min") and is_unsigned(self.x.dtype):
            kind = f"u{kind}"
        tile.accumulate(self.memory, index, update, kind=KINDS.get(kind, kind), limit=self.held, stride=self.stride)

    # -- vectors ------------------------------------------------------------------------------------------------

    def _local(self, index: Value, first: Value, rows: int) -> Value:
        """Places in the workgroup's range as i32; -1 for those outside and for rows that there are none of."""
        kind = ir.VectorType(index.type)
        width = kind.element_type.width
        if width < 32:
            kind = ir.VectorType.get(kind.shape, ir.IntegerType.get_signless(32))
            index = (arith_d.extui if is_unsigned(self.indices.dtype) else arith_d.extsi)(kind, index)

        def splat(value: int) -> Value:
            return arith_d.ConstantOp(kind, ir.DenseElementsAttr.get_splat(
                kind, ir.IntegerAttr.get(kind.element_type, value))).result

        negative = arith_d.cmpi(arith_d.CmpIPredicate.slt, index, splat(0))
        index = arith_d.select(negative, arith_d.addi(index, splat(self.places)), index)
        index = arith_d.maxsi(arith_d.minsi(index, splat(self.places - 1)), splat(0))
        narrow = ir.VectorType.get(kind.shape, ir.IntegerType.get_signless(32))
        if kind != narrow:
            index = arith_d.trunci(narrow, index)
        kind = narrow
        if self.held < self.places:
            index = arith_d.subi(index, self._spread(to_i32(self.at[1]), kind))
            inside = arith_d.cmpi(arith_d.CmpIPredicate.ult, index, splat(self.held))
            index = arith_d.select(inside, index, splat(-1))
        mask = self._mask(self.updates, first, rows)
        return index if mask is None else arith_d.select(self._turned(mask, rows), index, splat(-1))

    def _turned(self, mask: Value, rows: int) -> Value:
        """A mask in the memory's order as one of [rows, columns]."""
        if self.along:
            return mask
        kind = ir.VectorType.get([rows, self.columns], ir.IntegerType.get_signless(1))
        return ir.Operation.create("vector.transpose", results=[kind], operands=[mask], attributes={
            "permutation": ir.DenseI64ArrayAttr.get([1, 0])}).result

    @staticmethod
    def _spread(value: Value, kind: Type) -> Value:
        return ir.Operation.create("vector.broadcast", results=[kind], operands=[value]).result

    def _line(self, size: int, rows: int, across: bool) -> Value:
        """The number of each element's row (or, across, column), as i32."""
        i32 = ir.IntegerType.get_signless(32)
        line = ir.Operation.create("vector.step", results=[ir.VectorType.get([size], ir.IndexType.get())]).result
        line = arith_d.index_cast(ir.VectorType.get([size], i32), line)
        if not across:
            line = ir.Operation.create("vector.shape_cast", results=[ir.VectorType.get([size, 1], i32)],
                                       operands=[line]).result
        return self._spread(line, ir.VectorType.get([rows, self.columns], i32))

    def _memory_places(self, inside: Value, rows: int) -> Value:
        """Where the places from `inside` on lie in shared memory, as i32."""
        kind = ir.VectorType.get([rows, self.columns], ir.IntegerType.get_signless(32))
        stride = arith_d.ConstantOp(kind, ir.DenseElementsAttr.get_splat(
            kind, ir.IntegerAttr.get(kind.element_type, self.stride))).result
        at = arith_d.addi(arith_d.muli(self._line(self.columns, rows, True), stride), self._line(rows, rows, False))
        return arith_d.addi(at, self._spread(to_i32(inside), kind))

    def _scatter(self, tile: Value, inside: Value, rows: int) -> None:
        ir.Operation.create("vector.scatter", operands=[self.memory, self.k.dim(0), self._memory_places(inside, rows),
                                                        self._every(rows), tile])

    def _gather(self, inside: Value, rows: int) -> Value:
        kind = ir.VectorType.get([rows, self.columns], self.element)
        other = self._spread(constant(self.x.dtype, 0), kind)
        return ir.Operation.create("vector.gather", results=[kind], operands=[
            self.memory, self.k.dim(0), self._memory_places(inside, rows), self._every(rows), other]).result

    def _every(self, rows: int) -> Value:
        kind = ir.VectorType.get([rows, self.columns], ir.IntegerType.get_signless(1))
        return arith_d.ConstantOp(kind, ir.DenseElementsAttr.get_splat(
            kind, ir.IntegerAttr.get(kind.element_type, 1))).result

    # -- global memory ------------------------------------------------------------------------------------------

    def _coordinates(self, row: Value) -> list[Value]:
        return [self.at[0], row, self.at[2]]

    def _mask(self, buffer: Buffer, row: Value, rows: int) -> Value | None:
        """Which elements of a tile there are, in the memory's order; None where that is all."""
        sizes = [buffer.dims[1], buffer.dims[self.along]]
        steps = [rows, self.columns]
        if all(isinstance(n, int) and n % s == 0 for n, s in zip(sizes, steps, strict=True)):
            return None
        rest = [arith_d.subi(self.k.dim(n), at) for n, at in zip(sizes, (row, self.at[self.along]), strict=True)]
        if not self.along:
            rest, steps = rest[::-1], steps[::-1]
        kind = ir.VectorType.get(steps, ir.IntegerType.get_signless(1))
        return ir.Operation.create("vector.create_mask", results=[kind], operands=rest).result

    def _transfer(self, segments: Sequence[int]) -> dict[str, Attribute]:
        dims = [ir.AffineDimExpr.get(1), ir.AffineDimExpr.get(self.along)]
        return {"in_bounds": ir.Attribute.parse("[true, true]"),
                "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, dims)),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments))}

    def _read(self, buffer: Buffer, row: Value, rows: int) -> Value:
        mask = self._mask(buffer, row, rows)
        kind = ir.VectorType.get([rows, self.columns], stored(buffer.dtype))
        return ir.Operation.create(
            "vector.transfer_read", results=[kind],
            operands=[buffer.memref, *self._coordinates(row), constant(buffer.dtype, 0),
                      *([] if mask is None else [mask])],
            attributes=self._transfer([1, 3, 1, 0 if mask is None else 1])).result

    def _write(self, tile: Value, row: Value, rows: int) -> None:
        out = self.k.outputs[0]
        mask = self._mask(out, row, rows)
        ir.Operation.create(
            "vector.transfer_write",
            operands=[tile, out.memref, *self._coordinates(row), *([] if mask is None else [mask])],
            attributes=self._transfer([1, 1, 3, 0 if mask is None else 1]))


@converts_to_tiles("combine_columns")
def combine_columns(k: LoopKernel) -> int:
    _Columns(k).emit()
    return THREADS

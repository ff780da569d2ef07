"""Tile programs of scans on GPUs: scan_rows, scan_parts. A workgroup has some rows, a row, or a part of one.

    scf.forall (%i) = (0) to (%rows) step (2) {
      %x = vector.transfer_read %a[%i, 0], %neutral, %mask : vector<2x1024xf32>
      %y, %total = vector.scan <add>, %x, %start {inclusive = true, reduction_dim = 1}
      vector.transfer_write %y, %out[%i, 0], %mask }

Rows longer than a tile are walked in a loop that carries the totals. Columns, of x [matrices, n, columns], have tiles
of n by columns, which are scanned along the first dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Block, Operation, Type, Value, arith_d, ir, scf_d
from xcc.passes.shared.attributes import LOGARITHMS, REVERSE
from xcc.passes.shared.dims import pow2_above
from xcc.passes.xt_to_linalg.build.registry import converts_to_tiles
from xcc.passes.xt_to_linalg.build.types import (
    accumulator,
    constant,
    is_float,
    is_unsigned,
    stored,
    transfer_attributes,
)
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel
from xcc.passes.xt_to_linalg.ops.reduce import neutral
from xcc.symbolic import Dim

TILE = 4096         # elements of a step
EACH = 8            # elements of a thread
BESIDE = 64         # columns of a tile
EACH_OF_COLUMNS = 32
At = Callable[[Value], list[Value]]     # where a place along the scan is in memory
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _kind(kind: str, dtype: Type) -> str:
    """The combining kind of vector ops."""
    if kind in ("sum", "prod", "logsumexp"):
        return {"prod": "mul"}.get(kind, "add")
    return f"{kind}imumf" if is_float(dtype) else f"{kind}{'ui' if is_unsigned(dtype) else 'si'}"


class _Rows:
    """Emits the tiles of x [rows, n], [height, width], or of x [matrices, n, columns], [width, height]. `along`: the
    dim of a tile that is scanned."""

    def __init__(self, k: LoopKernel, part: int) -> None:
        self.k, self.x = k, k.inputs[0]
        self.kind, self.element = k.op.attr("kind"), stored(self.x.dtype)
        self.acc = stored(accumulator(self.x.dtype))
        rows, size, *columns = self.x.dims
        most = part or (size if isinstance(size, int) else TILE)
        if columns:
            beside = columns[0] if isinstance(columns[0], int) else BESIDE
            self.height = min(BESIDE, pow2_above(beside))
            self.width = min(TILE // self.height, max(32, pow2_above(most)))
        else:
            self.width = min(TILE, max(32, pow2_above(most)))
            self.height = 1 if part or not isinstance(rows, int) \
                else max(1, min(TILE // 2 // self.width, pow2_above(rows)))
        self.along = 0 if columns else 1
        self.reach: Dim = part or size
        self.part = part
        self.mask: Value | None = None

    @property
    def threads(self) -> int:
        each = EACH if self.along else EACH_OF_COLUMNS
        return max(64, min(1024, self.width * self.height // each))     # whole waves of any chip

    def neutral(self) -> Value:
        return constant(self.acc, neutral(self.kind, self.x.dtype))

    def vector(self, element: Type) -> Type:
        return ir.VectorType.get([self.height, self.width] if self.along else [self.width, self.height], element)

    def none(self) -> Value:
        """What is neutral, for each row of the tile."""
        kind = ir.VectorType.get([self.height], self.acc)
        return ir.Operation.create("vector.broadcast", results=[kind], operands=[self.neutral()]).results[0]

    def read(self, at: Sequence[Value]) -> Value:
        """The tile in the accumulator's type; past the ends of rows what is neutral."""
        x, kinds = self.x, self.vector(ir.IntegerType.get_signless(1))
        rest = [arith_d.subi(self.k.dim(d), i) for d, i in zip(x.dims[-2:], at[-2:], strict=True)]
        self.mask = ir.Operation.create("vector.create_mask", results=[kinds], operands=rest).results[0]
        pad = constant(x.dtype, neutral(self.kind, x.dtype))
        tile = ir.Operation.create(
            "vector.transfer_read", results=[self.vector(self.element)], operands=[x.memref, *at, pad, self.mask],
            attributes=transfer_attributes(1, len(at), 1, 1)).results[0]
        return tile if self.acc == self.element else arith_d.extf(self.vector(self.acc), tile)

    def write(self, out: Buffer, tile: Value, at: Sequence[Value]) -> None:
        if self.element != self.acc:
            tile = arith_d.truncf(self.vector(self.element), tile)
        ir.Operation.create("vector.transfer_write", operands=[tile, out.memref, *at, self.mask],
                            attributes=transfer_attributes(1, 1, len(at), 1))

    def starts(self, buffer: Buffer, at: list[Value]) -> Value:
        """What a part begins with."""
        kind = ir.VectorType.get([self.height], self.acc)
        if self.along:      # one row
            return ir.Operation.create("vector.broadcast", results=[kind], operands=[buffer.load(at)]).results[0]
        return ir.Operation.create("vector.transfer_read", results=[kind], attributes=_line(2, 1, 3, 1, 1),
                                   operands=[buffer.memref, *at, self.neutral(), self._columns(at)]).results[0]

    def put(self, totals: Value, buffer: Buffer, at: list[Value]) -> None:
        """Stores what a part sums to."""
        if self.along:
            ir.Operation.create("vector.transfer_write", operands=[totals, buffer.memref, *at],
                                attributes=_line(1, 1, 1, 2, 0))
        else:
            ir.Operation.create("vector.transfer_write", operands=[totals, buffer.memref, *at, self._columns(at)],
                                attributes=_line(2, 1, 1, 3, 1))

    def _columns(self, at: list[Value]) -> Value:
        """Which columns of the tile there are."""
        left = arith_d.subi(self.k.dim(self.x.dims[2]), at[2])
        kind = ir.VectorType.get([self.height], ir.IntegerType.get_signless(1))
        return ir.Operation.create("vector.create_mask", results=[kind], operands=[left]).results[0]

    def steps(self, first: Value, begin: Value, body: Callable[[Any, Any], Any], reverse: bool) -> Value:
        """``body(place, carried)`` for the tiles of a row or part from place `first` on; what it gives is carried."""
        if isinstance(self.reach, int) and self.reach <= self.width:
            return body(first, begin)
        count = self.k.dim(symbolic.ceildiv(self.reach, self.width))
        loop = scf_d.ForOp(self.k.dim(0), count, self.k.dim(1), [begin])
        with ir.InsertionPoint(loop.body):
            n, carried = loop.induction_variable, loop.inner_iter_args[0]
            if reverse:
                n = arith_d.subi(arith_d.subi(count, self.k.dim(1)), n)
            scf_d.YieldOp([body(arith_d.addi(first, arith_d.muli(n, self.k.dim(self.width))), carried)])
        return loop.results[0]

    def tiles(self, body: Callable[[At, Value, Value], None], backward: bool = False) -> None:
        """``body(at, part, first)`` for each workgroup: where its places are, the number of its part and the part's
        first place; backward: the last part first."""
        rows, size, *columns = self.x.dims
        parts = symbolic.ceildiv(size, self.part) if self.part else 1
        steps = [1, 1, self.height] if columns else [self.height, 1]
        loop = _forall([rows, parts, *columns], steps, self.k)
        with ir.InsertionPoint(loop):
            row, part, *column = loop.arguments
            if self.part and backward:      # what was read last is still in the cache
                part = arith_d.subi(self.k.dim(parts - 1), part)
            body(lambda place: [row, place, *column], part, arith_d.muli(part, self.k.dim(self.part)))
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()

    def scan(self, tile: Value, start: Value, inclusive: bool, reverse: bool) -> Operation:
        return ir.Operation.create(
            "vector.scan", results=[tile.type, start.type], operands=[tile, start],
            attributes={"kind": ir.Attribute.parse(f"#vector.kind<{_kind(self.kind, self.x.dtype)}>"),
                        "reduction_dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.along),
                        "inclusive": ir.BoolAttr.get(inclusive), **({REVERSE: ir.UnitAttr.get()} if reverse else {}),
                        **({LOGARITHMS: ir.UnitAttr.get()} if self.kind == "logsumexp" else {})})

    def total(self, tile: Value, carried: Value) -> Value:
        """What the tile and what is `carried` come to, for each of its rows."""
        if self.kind == "logsumexp":
            return self.scan(tile, carried, True, False).results[1]
        kind = ir.Attribute.parse(f"#vector.kind<{_kind(self.kind, self.x.dtype)}>")
        return ir.Operation.create(
            "vector.multi_reduction", results=[carried.type], operands=[tile, carried],
            attributes={"kind": kind, "reduction_dims": ir.DenseI64ArrayAttr.get([self.along])}).results[0]


def _line(last: int, *segments: int) -> dict[str, Attribute]:
    """Of a vector.transfer of one dim, dim `last` of memory."""
    walked = ir.AffineMap.get(last + 1, 0, [ir.AffineDimExpr.get(last)])
    return transfer_attributes(*segments) | {"in_bounds": ir.Attribute.parse("[true]"),
                                             "permutation_map": ir.AffineMapAttr.get(walked)}


def _forall(dims: list[Dim], steps: list[int], k: LoopKernel) -> Block:
    """The block of an scf.forall over `dims`."""
    dynamic = [k.dim(d) for d in dims if not isinstance(d, int)]
    i64s, i32s = ir.DenseI64ArrayAttr.get, ir.DenseI32ArrayAttr.get
    loop = ir.Operation.create("scf.forall", operands=dynamic, regions=1, attributes={
        "operandSegmentSizes": i32s([0, len(dynamic), 0, 0]), "staticLowerBound": i64s([0] * len(dims)),
        "staticUpperBound": i64s([d if isinstance(d, int) else _DYNAMIC for d in dims]), "staticStep": i64s(steps)})
    return loop.regions[0].blocks.append(*[ir.IndexType.get()] * len(dims))


@converts_to_tiles("scan_rows")
def scan_rows(k: LoopKernel) -> int:
    rows = _Rows(k, k.op.attr("part", 0))
    out, reverse = k.outputs[0], k.op.attr("reverse", False)

    def body(at: At, part: Value, first: Value) -> None:
        start = rows.starts(k.inputs[1], at(part)) if rows.part else rows.none()

        def step(place: Value, carried: Value) -> Value:
            made = rows.scan(rows.read(at(place)), carried, not k.op.attr("exclusive", False), reverse)
            rows.write(out, made.results[0], at(place))
            return made.results[1]

        rows.steps(first, start, step, reverse)

    rows.tiles(body, backward=True)
    return rows.threads


@converts_to_tiles("scan_parts")
def scan_parts(k: LoopKernel) -> int:
    rows = _Rows(k, k.op.attr("part"))

    def body(at: At, part: Value, first: Value) -> None:
        def step(place: Value, carried: Value) -> Value:
            return rows.total(rows.read(at(place)), carried)

        rows.put(rows.steps(first, rows.none(), step, False), k.outputs[0], at(part))

    rows.tiles(body)
    return rows.threads

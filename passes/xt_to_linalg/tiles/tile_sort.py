"""Tile programs of sorts on GPUs: sort_rows, sort_runs. A workgroup has some rows, a row, or a run of one.

    scf.forall (%i, %r) = (0, 0) to (%rows, %runs) step (1, 1) {
      %x = vector.transfer_read %a[%i, %r * 4096], %zero, %mask : vector<1x4096xf32>
      %w = key of %x << 32 | place : vector<1x4096xi64>
      %s = "tile.sort"(%w) {keep = 64} : (vector<1x4096xi64>) -> vector<1x64xi64>
      vector.transfer_write ... }

A key is an integer of the same order, so that a key and its place are one number where both fit 64 bits, and no two are
equal: the sort is stable. The sign of a zero, which does not count, lies behind the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir
from xcc.dialects import tile
from xcc.passes.shared.dims import pow2_above
from xcc.passes.xt_to_linalg.build.registry import converts_to_tiles
from xcc.passes.xt_to_linalg.build.types import constant, is_float, is_unsigned, stored, transfer_attributes
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel
from xcc.symbolic import Dim

EACH = 16           # elements of a thread
LEAST = 1024        # elements of a tile
THREADS = (64, 1024)    # whole waves of any chip
INFINITY = {"f64": 0x7FF << 52, "f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_I = arith_d.CmpIPredicate


def _int(width: int) -> Type:
    return ir.IntegerType.get_signless(width)


def _like(value: Value, element: Type) -> Type:
    return ir.VectorType.get(ir.VectorType(value.type).shape, element)


def _splat(like: Value, number: int) -> Value:
    """`number` for each element of the vector `like`."""
    kind = ir.VectorType(like.type)
    width = kind.element_type.width
    number &= (1 << width) - 1
    attribute = ir.IntegerAttr.get(kind.element_type, number - (1 << width) if number >> width - 1 else number)
    return arith_d.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, attribute)).result


def _resized(value: Value, width: int, unsigned: bool = False) -> Value:
    """A vector of integers in `width` bits."""
    have = ir.VectorType(value.type).element_type.width
    if have == width:
        return value
    kind = _like(value, _int(width))
    return arith_d.trunci(kind, value) if have > width else (arith_d.extui if unsigned else arith_d.extsi)(kind, value)


class _Key:
    """Elements of `dtype` as integers of the same order: `bits` of them count, in 32 or 64."""

    def __init__(self, dtype: Type, descending: bool) -> None:
        self.dtype, self.descending = dtype, descending
        self.bits = int(dtype.width)
        self.held = max(32, self.bits)
        self.most = (1 << self.bits - 1) - 1

    def of(self, x: Value) -> tuple[Value, Value | None]:
        """(keys, whether elements are -0)."""
        if not is_float(self.dtype):
            key = _resized(x, self.held, is_unsigned(self.dtype))
            if is_unsigned(self.dtype):     # the least becomes the least of signed ones
                key = arith_d.subi(key, _splat(key, 1 << self.bits - 1))
            return self.turned(key), None
        raw = _resized(arith_d.bitcast(_like(x, _int(self.bits)), x), self.held)
        minus = arith_d.cmpi(_I.eq, raw, _splat(raw, -self.most - 1))
        key = self._mirrored(arith_d.select(minus, _splat(raw, 0), raw))
        size = arith_d.andi(raw, _splat(raw, self.most))
        nan = arith_d.cmpi(_I.sgt, size, _splat(raw, INFINITY[str(self.dtype)]))
        return self.turned(arith_d.select(nan, _splat(raw, self.most), key)), minus

    def _mirrored(self, raw: Value) -> Value:
        """Bits of floats as integers of their order, and back."""
        sign = arith_d.shrsi(raw, _splat(raw, self.held - 1))
        return arith_d.xori(raw, arith_d.andi(sign, _splat(raw, self.most)))

    def turned(self, key: Value) -> Value:
        return arith_d.xori(key, _splat(key, -1)) if self.descending else key

    def back(self, key: Value, minus: Value) -> Value:
        """The elements of `keys`, -0 where `minus` says so."""
        key = self.turned(key)
        if is_float(self.dtype):
            raw = self._mirrored(key)
            raw = _resized(arith_d.select(minus, _splat(raw, -self.most - 1), raw), self.bits)
            return arith_d.bitcast(_like(raw, self.dtype), raw)
        if is_unsigned(self.dtype):
            key = arith_d.addi(key, _splat(key, 1 << self.bits - 1))
        return _resized(key, self.bits)


class _Runs:
    """Emits the tiles of x [rows, n], runs of `width` elements of which `keep` are left."""

    def __init__(self, k: LoopKernel, width: int, keep: int, descending: bool = False) -> None:
        self.k, self.x = k, k.inputs[0]
        self.width, self.keep = width, keep
        self.key = _Key(self.x.dtype, descending)
        rows = self.x.dims[0]
        self.height = min(max(1, LEAST // width), pow2_above(rows)) if isinstance(rows, int) else 1
        self.count = symbolic.ceildiv(self.x.dims[1], width)

    @property
    def threads(self) -> int:
        each = EACH if self.key.bits <= 32 else EACH // 2
        return max(THREADS[0], min(THREADS[1], self.width * self.height // each))

    def emit(self) -> None:
        """The whole kernel: the tile's keys or elements, and places."""
        dynamic = [self.k.dim(d) for d in (self.x.dims[0], self.count) if not isinstance(d, int)]
        i64s, i32s = ir.DenseI64ArrayAttr.get, ir.DenseI32ArrayAttr.get
        loop = ir.Operation.create("scf.forall", operands=dynamic, regions=1, attributes={
            "operandSegmentSizes": i32s([0, len(dynamic), 0, 0]), "staticLowerBound": i64s([0, 0]),
            "staticUpperBound": i64s([d if isinstance(d, int) else _DYNAMIC for d in (self.x.dims[0], self.count)]),
            "staticStep": i64s([self.height, 1])})
        block = loop.regions[0].blocks.append(*[ir.IndexType.get()] * 2)
        with ir.InsertionPoint(block):
            self._tile(*block.arguments)
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()

    def _tile(self, row: Value, run: Any) -> None:
        first = arith_d.muli(run, self.k.dim(self.width))
        words, minus = self._words(row, first)
        words = list(tile.sort(*words, keep=pow2_above(self.keep)))
        key, number = words if len(words) == 2 else self._parts(words[0])
        if minus:
            flag = arith_d.cmpi(_I.ne, arith_d.andi(number, _splat(number, 1)), _splat(number, 0))
            number = arith_d.shrui(number, _splat(number, 1))
        else:
            flag = None
        values, places = self.k.outputs
        element = stored(values.dtype)
        made = self.key.back(key, flag) if is_float(element) or self.key.bits < 32 or self.key.descending \
            or is_unsigned(values.dtype) else key
        start = self._broadcast(arith_d.index_cast(_int(32), first), number)
        column = arith_d.muli(run, self.k.dim(self.keep))
        self._write(values, made, row, column)
        self._write(places, _resized(arith_d.addi(number, start), places.dtype.width), row, column)

    def _words(self, row: Value, first: Value) -> tuple[list[Value], bool]:
        """What is sorted, and whether the lowest bit of places says that an element is -0."""
        x = self._read(row, first)
        key, minus = self.key.of(x)
        number = self._places(x)
        size = self.x.dims[1]
        if not isinstance(size, int) or size % self.width:      # what lies past the end comes last
            left = arith_d.index_cast(_int(32), arith_d.minui(arith_d.subi(self.k.dim(size), first),
                                                              self.k.dim(self.width)))
            inside = arith_d.cmpi(_I.slt, number, self._broadcast(left, number))
            key = arith_d.select(inside, key, _splat(key, self.key.most))
        if minus is not None:
            number = arith_d.ori(arith_d.shli(number, _splat(number, 1)), arith_d.extui(number.type, minus))
        if self.key.bits > 32:
            return [key, number], minus is not None
        width = 32 if self.key.bits <= 16 else 64
        high = _resized(key, width)
        high = arith_d.shli(high, _splat(high, width // 2))
        return [arith_d.ori(high, _resized(number, width, unsigned=True))], minus is not None

    @staticmethod
    def _parts(word: Value) -> tuple[Value, Value]:
        """Key and place, each in 32 bits."""
        half = ir.VectorType(word.type).element_type.width // 2
        key = _resized(arith_d.shrsi(word, _splat(word, half)), 32)
        return key, _resized(arith_d.andi(word, _splat(word, (1 << half) - 1)), 32)

    def _places(self, like: Value) -> Value:
        """Each element's place in its run, as i32."""
        line = ir.Operation.create("vector.step", results=[ir.VectorType.get([self.width], ir.IndexType.get())]).result
        line = arith_d.index_cast(ir.VectorType.get([self.width], _int(32)), line)
        return self._broadcast(line, like)

    @staticmethod
    def _broadcast(value: Value, like: Value) -> Value:
        kind = _like(like, _int(32))
        return ir.Operation.create("vector.broadcast", results=[kind], operands=[value]).result

    def _mask(self, dims: Sequence[Dim], at: Sequence[Any], width: int) -> Value:
        rest = [arith_d.subi(self.k.dim(d), a) for d, a in zip(dims, at, strict=True)]
        rest[1] = arith_d.minsi(rest[1], self.k.dim(min(width, self.keep))) if width != self.width else rest[1]
        kind = ir.VectorType.get([self.height, width], _int(1))
        return ir.Operation.create("vector.create_mask", results=[kind], operands=rest).result

    def _read(self, row: Value, column: Value) -> Value:
        mask = self._mask(self.x.dims, (row, column), self.width)
        kind = ir.VectorType.get([self.height, self.width], stored(self.x.dtype))
        return ir.Operation.create(
            "vector.transfer_read", results=[kind],
            operands=[self.x.memref, row, column, constant(self.x.dtype, 0), mask],
            attributes=transfer_attributes(1, 2, 1, 1)).result

    def _write(self, out: Buffer, tile: Value, row: Value, column: Value) -> None:
        mask = self._mask(out.dims, (row, column), ir.VectorType(tile.type).shape[1])
        ir.Operation.create("vector.transfer_write", operands=[tile, out.memref, row, column, mask],
                            attributes=transfer_attributes(1, 1, 2, 1))


@converts_to_tiles("sort_rows")
def sort_rows(k: LoopKernel) -> int:
    size = k.inputs[0].dims[1]
    assert isinstance(size, int)
    runs = _Runs(k, pow2_above(size), k.op.attr("keep"), k.op.attr("descending", False))
    runs.emit()
    return runs.threads


@converts_to_tiles("sort_runs")
def sort_runs(k: LoopKernel) -> int:
    runs = _Runs(k, k.op.attr("run"), k.op.attr("keep"))
    runs.emit()
    return runs.threads

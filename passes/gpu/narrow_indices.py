"""Index arithmetic of GPU kernels in 32 bits where every buffer is small enough for it.

    %a = arith.muli %i, %c256 : index           %j = arith.index_cast %i : index to i32
    %b = arith.addi %a, %t : index          ->  %a = arith.muli %j, %c256 : i32     %b = arith.addi %a, %s : i32
    memref.load %m[%b]                          memref.load %m[arith.index_cast %b : i32 to index]

A GPU adds and compares 64 bits in several instructions and two registers. What counts on in 32 bits comes from
constants, ids of threads and loops, never from data: an index that was read may be anything before it is clamped.
Kernels with a buffer of more than 2^30 elements keep 64 bits. Of buffers of symbolic size a kernel says that they are
small (``xcc.small``, see `xcc.dialects.tile.program`): what then counts on in 32 bits has a range that fits, and places
in memory, which are small where they are used, are sums and products of what is left of their terms.
"""

from __future__ import annotations

import functools
import math

from xcc._mlir import Attribute, Block, Module, Operation, Type, Value, arith_d, ir, maker, memref_d
from xcc.dialects.tile.program import SMALL, SMALL_GRID, SMALL_SIZE
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.index_values import kernel_symbols
from xcc.passes.gpu.index.ranges import Range, range_of
from xcc.passes.shared.values import with_operands
from xcc.passes.walk import ops_where

ARITHMETIC = frozenset(f"arith.{name}" for name in (
    "addi subi muli divui divsi remui remsi floordivsi ceildivui ceildivsi minsi maxsi minui maxui andi ori xori shli "
    "shrui shrsi cmpi select constant").split()) | {f"vector.{name}" for name in (
        "broadcast shuffle extract from_elements step").split()}
RING = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")     # low bits of the result depend on low bits alone
SOURCES = {"gpu.thread_id": 1023, "gpu.block_id": SMALL_GRID - 1, "gpu.lane_id": 63}        # the largest number of each
COPY = "nvgpu.device_async_copy"
ACCESSES = {"vector.load": 0, "memref.load": 0, "vector.store": 1, "memref.store": 1, COPY: 2}  # its buffer's operand
SEGMENTS = "operandSegmentSizes"
VIEW = "memref.reinterpret_cast"


@register_pass
class NarrowIndices(Pass):
    """Rewrites index arithmetic of small kernels in i32."""

    def run(self, module: Module, ctx: PassContext) -> None:
        functions = ops_where(module, lambda op: op.name == "gpu.func")
        for f in functions:
            entry = f.regions[0].blocks[0]
            if all(_is_small(a.type) for a in entry.arguments):
                _Narrower().block(entry)
            elif SMALL in f.attributes:
                _SmallNarrower(f).run()


def _is_small(kind: Type) -> bool:
    if not isinstance(kind, ir.MemRefType):
        return False        # a symbol
    return kind.has_static_shape and math.prod(kind.shape) <= SMALL_SIZE


def _narrow_type(kind: Type) -> Type:
    i32 = ir.IntegerType.get_signless(32)
    return ir.VectorType.get(kind.shape, i32) if isinstance(kind, ir.VectorType) else i32


def _is_index(kind: Type) -> bool:
    return isinstance(kind.element_type if isinstance(kind, ir.VectorType) else kind, ir.IndexType)


class _Narrower:
    """Values that fit into 32 bits, with their narrow twins."""

    def __init__(self) -> None:
        self.twin: dict[Value, Value] = {}

    def block(self, block: Block) -> None:
        for op in list(block.operations):
            self._visit(op.operation)

    def _visit(self, op: Operation) -> None:
        if op.name in SOURCES:
            with ir.InsertionPoint.after(op), op.location:
                self.source(op.results[0], (0, SOURCES[op.name]))
        elif op.name in ARITHMETIC:
            self._arithmetic(op)
            return
        for region in op.regions:
            for inner in region.blocks:
                if op.name == "scf.for":
                    self._induction(op, inner)
                self.block(inner)

    def source(self, value: Value, _range: Range) -> None:
        """A value in this range gets a twin at the insertion point."""
        self.twin[value] = _cast(value, _narrow_type(value.type))

    def _induction(self, loop: Operation, block: Block) -> None:
        iv = block.arguments[0]
        bounds = list(loop.operands)[:3]
        if _is_index(iv.type) and all(v in self.twin for v in bounds):
            with ir.InsertionPoint.at_block_begin(block), loop.location:
                self.source(iv, self.between(*bounds[:2]))

    def between(self, _low: Value, _high: Value) -> Range:
        return 0, 0

    def range_of(self, _op: Operation, _operands: list[Value]) -> Range | None:
        """The range of what `op` makes of its index operands; None where it may not fit."""
        return 0, 0

    def made(self, value: Value, narrow: Value, _range: Range) -> None:
        self.twin[value] = narrow

    def _arithmetic(self, op: Operation) -> None:
        operands, results = list(op.operands), list(op.results)
        wide = [v for v in operands if _is_index(v.type)]
        if not wide and not (op.name in ("arith.constant", "vector.step") and _is_index(results[0].type)):
            return
        if any(v not in self.twin for v in wide):
            return
        attributes = {n: op.attributes[n] for n in op.attributes}
        if op.name == "arith.constant":
            value = _narrow_constant(attributes["value"])
            if value is None:
                return
            attributes = {"value": value}
        span = self.range_of(op, wide) if _is_index(results[0].type) else (0, 0)
        if span is None or not _fits(span[0]) or not _fits(span[1]):
            return
        kinds = [_narrow_type(r.type) if _is_index(r.type) else r.type for r in results]
        with ir.InsertionPoint.after(op), op.location:
            new = with_operands(op, [self.twin.get(v, v) for v in operands], kinds, attributes)
        for old, made in zip(results, new.results, strict=True):
            if made.type == old.type:
                old.replace_all_uses_with(made)
                continue
            with ir.InsertionPoint.after(new), op.location:
                back = _cast(made, old.type)
            old.replace_all_uses_with(back)
            self.made(back, made, span)
        op.erase()


class _SmallNarrower(_Narrower):
    """Of a kernel whose sizes are symbols."""

    def __init__(self, f: Operation) -> None:
        super().__init__()
        self.f, self.entry = f, f.regions[0].blocks[0]
        self.ranges: dict[Value, Range] = {}
        self.low: dict[Value, Value] = {}       # the low bits of a place in memory
        self.flat: dict[Value, tuple[Value, list[Value]]] = {}      # a buffer in one dim, and its sizes from dim 1 on

    def run(self) -> None:
        small = {ir.StringAttr(s).value for s in ir.ArrayAttr(self.f.attributes[SMALL])}
        with ir.InsertionPoint.at_block_begin(self.entry), self.f.location:
            for value, symbol in kernel_symbols(self.f).items():
                if str(symbol) in small:
                    self.source(value, (0, SMALL_SIZE - 1))
        self.block(self.entry)
        for op in ops_where(self.f, lambda op: op.name in ACCESSES or op.name == VIEW):
            with ir.InsertionPoint(op), op.location:
                self._place(op)

    def source(self, value: Value, span: Range) -> None:
        super().source(value, span)
        self.ranges[value] = span

    def between(self, low: Value, high: Value) -> Range:
        return self.ranges[low][0], max(self.ranges[low][1], self.ranges[high][1])

    def range_of(self, op: Operation, operands: list[Value]) -> Range | None:
        return range_of(op, [self.ranges[v] for v in operands])

    def made(self, value: Value, narrow: Value, span: Range) -> None:
        super().made(value, narrow, span)
        self.ranges[value] = span

    def _place(self, op: Operation) -> None:
        """Has an access, or a view of a buffer, compute its place in 32 bits."""
        first = ACCESSES.get(op.name, 0)
        memory = op.operands[first]
        if memory not in self.entry.arguments or ir.MemRefType(memory.type).has_static_shape:
            return
        if op.name == VIEW:
            op.operands[1] = _cast(self._low(op.operands[1]), ir.IndexType.get())
            return
        rank = ir.MemRefType(memory.type).rank
        flat, inner = self._flat(memory, rank)
        total = self._low(op.operands[first + 1])
        for v, n in zip(list(op.operands)[first + 2:first + 1 + rank], inner, strict=True):
            total = arith_d.addi(arith_d.muli(total, n), self._low(v))
        at = _cast(total, ir.IndexType.get())
        operands = list(op.operands)
        operands[first:first + 1 + rank] = [flat, at]
        new = with_operands(op, operands)
        if op.name == COPY:
            new.attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([1, 1, 1, 1, len(operands) - 4])
        for old, made in zip(op.results, new.results, strict=True):
            old.replace_all_uses_with(made)
        op.erase()

    def _flat(self, memory: Value, rank: int) -> tuple[Value, list[Value]]:
        if memory not in self.flat:
            unknown = ir.ShapedType.get_dynamic_size()
            kind = ir.MemRefType.get([unknown], ir.MemRefType(memory.type).element_type,
                                     layout=ir.StridedLayoutAttr.get(0, [1]))
            with ir.InsertionPoint.at_block_begin(self.entry):
                sizes = [memref_d.dim(memory, arith_d.constant(ir.IndexType.get(), d)) for d in range(rank)]
                count = functools.reduce(arith_d.muli, sizes)
                view = memref_d.ReinterpretCastOp(kind, memory, [], [count], [], [0], [unknown], [1]).result
                self.flat[memory] = view, [_cast(n, _narrow_type(n.type)) for n in sizes[1:]]
        return self.flat[memory]

    def _low(self, value: Value) -> Value:
        """The low 32 bits of a value, made where it is."""
        if value in self.twin:
            return self.twin[value]
        if value not in self.low:
            op = maker(value)
            operands = [self._low(v) for v in op.operands] if op is not None and op.name in RING else []
            with ir.InsertionPoint.at_block_begin(value.owner) if op is None else ir.InsertionPoint.after(op):
                self.low[value] = ir.Operation.create(op.name, [_narrow_type(value.type)], operands).results[0] \
                    if op is not None and operands else _cast(value, _narrow_type(value.type))
        return self.low[value]


def _cast(value: Value, kind: Type) -> Value:
    return ir.Operation.create("arith.index_cast", results=[kind], operands=[value]).results[0]


def _narrow_constant(value: Value) -> Attribute | None:
    """The attribute with elements of 32 bits; None when one does not fit."""
    i32 = ir.IntegerType.get_signless(32)
    if isinstance(value, ir.IntegerAttr):
        return ir.IntegerAttr.get(i32, value.value) if _fits(value.value) else None
    dense = ir.DenseIntElementsAttr(value)
    kind = _narrow_type(value.type)
    if dense.is_splat:
        number = ir.IntegerAttr(dense.get_splat_value()).value
        return ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(i32, number)) if _fits(number) else None
    numbers = list(dense)
    if not all(map(_fits, numbers)):
        return None
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(i32, n) for n in numbers], kind)


def _fits(n: int) -> bool:
    return -(1 << 31) <= n < 1 << 31

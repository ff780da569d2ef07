"""A program of block values as one of loops over machine vectors: the walk over its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from xcc._mlir import Block, Operation, Type, Value, arith_d, ir
from xcc.diagnostics import CompilerBug, UserError
from xcc.passes.shared.dot_instructions import DotProduct
from xcc.passes.shared.updates import updated_only
from xcc.passes.shared.values import index, is_vector, op, with_operands
from xcc.passes.tile.nests import control, products, reductions, rows, scans, stores
from xcc.passes.tile.nests.choice import is_flattened, is_lazy, kept, unit_reshape
from xcc.passes.tile.nests.chunks import chunked, instances_of
from xcc.passes.tile.nests.instances import PEELED, emit_instance
from xcc.passes.tile.nests.joined import keeping_reduction
from xcc.passes.tile.nests.kept import Coords, Kept, memory_element
from xcc.passes.tile.nests.loops import FEW, Wholes, loops
from xcc.passes.tile.nests.operands import slots_of
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.private import Private, copies
from xcc.passes.tile.nests.scans import Running
from xcc.passes.tile.nests.shared import CHUNKS, Slots, shared_products

VECTORS = 2             # machine vectors of 32-bit elements in a piece
MOST_BYTES = 4 << 20    # of a core's stack


def retile(func: Operation, vector_bytes: int, chunks: int, dots: Sequence[DotProduct] = (),
           tiles: bool = False) -> Operation:
    """Puts the loops that `func` becomes ahead of it; the new function. `chunks`: of instances, where one has memory of
    its own. `dots`, `tiles`: what the chip has for products, tile registers among them."""
    with ir.InsertionPoint(func), func.location:
        attributes = {n: func.attributes[n] for n in func.attributes}
        made = ir.Operation.create("func.func", regions=1, attributes=attributes)
        old = func.regions[0].blocks[0]
        block = made.regions[0].blocks.append(*[a.type for a in old.arguments])
        r = Retiler(vector_bytes, chunks, dots, tiles)
        r.values.update(zip(old.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            r.block(old)
    if r.bytes > MOST_BYTES:
        name = ir.StringAttr(func.attributes["sym_name"]).value
        raise UserError(f"tile program '{name}': its tiles need {r.bytes} bytes of a core's stack, {MOST_BYTES} are "
                        "the most: take smaller tiles")
    return made


class Retiler:
    """The code of one function. `values`: what scalars and memrefs became; `kept`: block values in memory."""

    def __init__(self, vector_bytes: int, chunks: int, dots: Sequence[DotProduct], tiles: bool) -> None:
        self.vector_bytes, self.lanes, self.chunks, self.dots = vector_bytes, vector_bytes // 4, chunks, dots
        self.tiles = tiles
        self.values: dict[Value, Value] = {}
        self.kept: dict[Value, Kept] = {}
        self.targets: dict[Value, Kept] = {}      # where a value is to be kept that a loop carries on
        self.joined: dict[Value, Kept] = {}         # where a value is kept by the loops that are being made
        self.joins: dict[Operation, list[Value]] = {}   # the values that the loops of a reduction keep
        self.private: dict[Any, Private] = {}   # copies of buffers that instances only update
        self.slots: dict[tuple[Operation, int], Slots] = {}      # operands that instances share: product, number
        self.scans: dict[Operation, Running] = {}     # scans, at the piece that is being made
        self.bytes = 0
        self.wholes = Wholes()
        self.single: Value | None = None    # whether one thread runs all instances
        self.whole = False          # all masks let everything through

    def get(self, value: Value) -> Value:
        return self.values[value]

    def block(self, block: Block) -> None:
        for operation in block.operations:
            with operation.operation.location:
                self.emit(operation.operation)

    def emit(self, source: Operation) -> None:
        handler = _HANDLERS.get(source.name)
        if handler is not None:
            handler(self, source)
        elif source.name in ("scf.for", "scf.while", "scf.if"):
            control.HANDLERS[source.name](self, source)
        elif len(source.results) and is_vector(source.results[0]):
            self.vector(source)
        elif source.name == "gpu.barrier":
            return
        else:
            self.copy(source)

    def vector(self, source: Operation) -> None:
        """A block value that no loop of its own computes."""
        if source.name == "vector.shape_cast" and not unit_reshape(source):
            if not is_flattened(source):
                self.reshape(source)
        elif source.name == "arith.constant" and not is_lazy(source):
            self._table(source)
        elif not is_lazy(source):
            raise CompilerBug(f"retile: no rule for '{source.name}'")
        elif kept(source):
            reduction = keeping_reduction(source)
            if reduction is not None:
                self.joins.setdefault(reduction, []).append(source.results[0])
                return
            for r in source.results:
                self.keep(r)

    def copy(self, source: Operation) -> None:
        """The same operation, of scalars and memrefs, with its regions."""
        made = with_operands(source, map(self.get, source.operands))
        self.values.update(zip(source.results, made.results, strict=True))
        for old, new in zip(source.regions, made.regions, strict=True):
            for inner in old.blocks:
                block = new.blocks.append(*[a.type for a in inner.arguments])
                self.values.update(zip(inner.arguments, block.arguments, strict=True))
                with ir.InsertionPoint(block):
                    self.block(inner)

    # -- memory -------------------------------------------------------------------------------------------------

    def buffer(self, shape: Sequence[int], element: Type, shared: bool = False) -> Kept:
        """New memory for a block value, or for what instances share."""
        stored = memory_element(element)
        size = prod(shape)
        if not shared:
            self.bytes += size * (8 if isinstance(stored, ir.IndexType) else stored.width // 8)
        memref = op("memref.alloca", [ir.MemRefType.get([size], stored)], [],
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                    alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64))
        return Kept(memref, shape, element)

    def keep(self, value: Value) -> Kept:
        """Computes a value into memory."""
        target = self.place(value)
        self.fill(target, value)
        self.kept[value] = target
        return target

    def place(self, value: Value) -> Kept:
        """Where a value is to be kept."""
        kind = ir.VectorType(value.type)
        return self.targets.get(value) or self.buffer(kind.shape, kind.element_type)

    @contextmanager
    def joining(self, reduction: Operation) -> Iterator[None]:
        """Around the loops of a reduction, which keep the values that wait for them."""
        waiting = {v: self.place(v) for v in self.joins.pop(reduction, [])}
        self.joined.update(waiting)
        yield
        for v, place in waiting.items():
            del self.joined[v]
            self.kept[v] = place

    def fill(self, target: Kept, value: Value, element: Type | None = None) -> None:
        """Writes the elements of `value` to `target`."""
        def body(coords: Coords, lane: int, width: int) -> None:
            target.store(Pieces(self).of(value, coords, lane, width), coords, lane)

        self.nest(ir.VectorType(value.type).shape, body)

    def in_memory(self, value: Value) -> Kept:
        """A value that is needed in memory."""
        if value in self.kept:
            return self.kept[value]
        source = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if source is None or source.name != "vector.shape_cast" or source.operands[0] not in self.kept:
            return self.keep(value)
        self.reshape(source)
        return self.kept[value]

    def reshape(self, source: Operation) -> None:
        have = self.in_memory(source.operands[0])
        kind = ir.VectorType(source.results[0].type)
        self.kept[source.results[0]] = Kept(have.memref, kind.shape, kind.element_type)

    def _table(self, source: Operation) -> None:
        kind = ir.VectorType(source.results[0].type)
        target = self.buffer(kind.shape, kind.element_type)
        line = ir.VectorType.get([prod(kind.shape)], kind.element_type)
        made = op("arith.constant", [kind], [], value=source.attributes["value"])
        flat = op("vector.shape_cast", [line], [made])
        target.store(flat, (0,) * kind.rank, kind.rank - 1)
        self.kept[source.results[0]] = target

    # -- loops --------------------------------------------------------------------------------------------------

    def width(self, size: int, element: Type | None = None) -> int:
        """Elements of a piece along a dim of `size`."""
        wide = element is not None and (isinstance(element, ir.IndexType) or element.width == 64)
        return min(size, VECTORS * self.vector_bytes // (8 if wide else 4))

    def lane(self, shape: Sequence[int]) -> int:
        """The dim along which pieces lie: the last that has several elements."""
        return next((d for d in reversed(range(len(shape))) if shape[d] > 1), len(shape) - 1)

    def nest(self, shape: Sequence[int], body: Callable[[Coords, int, int], None], lane: int = -1,
             order: Sequence[int] = (), width: int = 0) -> None:
        """Calls `body(coords, lane, width)` inside loops over `shape`, the lane's innermost."""
        lane = self.lane(shape) if lane < 0 else lane
        width = width or self.width(shape[lane])
        dims = [d for d in (order or range(len(shape))) if d != lane] + [lane]
        steps = [width if d == lane else 1 for d in dims]

        def inside(coords: list[Value | int]) -> None:
            places: list[Value | int] = [0] * len(shape)
            for d, c in zip(dims, coords, strict=True):
                places[d] = c
            body(tuple(places), lane, width)

        loops(self.wholes, [shape[d] for d in dims], steps, inside, FEW)


def _extract(r: Retiler, source: Operation) -> None:
    """vector.extract of the one element of a value"""
    shape = ir.VectorType(source.operands[0].type).shape
    if is_vector(source.results[0]) or prod(shape) != 1:
        raise CompilerBug("retile: no rule for a vector.extract of one element of many")
    r.values[source.results[0]] = Pieces(r).of(source.operands[0], (0,) * len(shape), r.lane(shape), 0)


def _scatter(r: Retiler, source: Operation) -> None:
    """vector.scatter"""
    memref, start, places, mask, value = source.operands

    def body(coords: Coords, lane: int, width: int) -> None:
        pieces = Pieces(r)
        chosen, at, piece = (pieces.of(v, coords, lane, width) for v in (mask, places, value))
        op("vector.scatter", [], [r.get(memref), r.get(start), at, chosen, piece])

    r.nest(ir.VectorType(value.type).shape, body)


def _forall(r: Retiler, source: Operation) -> None:
    """scf.forall over the instances"""
    updates, products = updated_only(source), shared_products(source)
    if not updates and not products:
        r.single = arith_d.cmpi(arith_d.CmpIPredicate.sle, instances_of(r, source), index(1))
        made = with_operands(source, map(r.get, source.operands))
        if PEELED in made.attributes:
            del made.attributes[PEELED]
        old = source.regions[0].blocks[0]
        block = made.regions[0].blocks.append(*[a.type for a in old.arguments])
        r.values.update(zip(old.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            emit_instance(r, source)
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()
        return
    copy, merge, many, alone = copies(r, source, updates)

    def begin(instances: Value) -> None:
        copy(instances)
        for product in products:
            slots_of(r, source, product)

    chunks = ir.IntegerAttr(source.attributes[CHUNKS]).value if CHUNKS in source.attributes else r.chunks
    chunked(r, source, chunks, begin, merge, many, alone)


_HANDLERS: dict[str, Callable[[Retiler, Any], None]] = {
    "scf.forall": _forall,
    "vector.extract": _extract, "vector.scatter": _scatter,
    **reductions.HANDLERS, **products.HANDLERS, **rows.HANDLERS, **scans.HANDLERS, **stores.HANDLERS,
}

"""The walk of `unroll-vectors`: what each n-D value became, and the handlers of ops.

The work is one walk in program order; an old op stays until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import Block, InsertionPoint, Operation, Region, Type, Value, ir, owner_op
from xcc.diagnostics import CompilerBug
from xcc.passes.shared.dot_instructions import DotProduct
from xcc.passes.shared.lanes import LOOKUP, SCALE
from xcc.passes.shared.registering import registering
from xcc.passes.shared.values import dense_constant, index, op, shuffle, splat_constant, vec, with_operands
from xcc.passes.vector.unroll.group_tiles import computed_groups
from xcc.passes.vector.unroll.tiles import Tile, keys
from xcc.passes.walk import ops_where

Handler = Callable[["Unroller", Any], None]
HANDLERS: dict[str, Handler] = {}


def unrolls(*names: str) -> Callable[[Handler], Handler]:
    """Registers the handler of the ops called `names`."""
    return registering(HANDLERS, names, "handlers")


class Unroller:
    """The state of one function's walk: what each n-D value became, and which old ops to erase."""

    def __init__(self, lanes: int, dot: Sequence[DotProduct] = ()) -> None:
        self.lanes = lanes
        self.dot = dot
        self.tiles: dict[Value, Tile] = {}
        self.dead: list[Operation] = []
        self.readers: dict[Any, bool] = {}

    def function(self, f: Operation) -> None:
        self.block(f.regions[0].blocks[0])
        for old in reversed(self.dead):
            old.erase()

    def instructions(self, f: Operation) -> None:
        """Of a function of vectors of some registers each, those operations alone that stand for an instruction."""
        for o in ops_where(f, lambda x: x.name in (SCALE, LOOKUP)):
            with ir.InsertionPoint(o), o.location:
                for v in o.operands:
                    width = ir.VectorType(v.type).shape[0]
                    pieces = [range(i, min(i + self.lanes, width)) for i in range(0, width, self.lanes)]
                    self.tiles[v] = self.new(v, {(n,): v if len(pieces) == 1 else shuffle(v, v, piece)
                                                 for n, piece in enumerate(pieces)})
                HANDLERS[o.name](self, o)
                self.dead.remove(o)
                o.results[0].replace_all_uses_with(_joined(self.tiles[o.results[0]].values()))
            o.erase()

    def block(self, block: Block) -> None:
        for o in list(block.operations):
            self.visit(o.operation)

    def visit(self, o: Operation) -> None:
        handler = HANDLERS.get(o.name)
        with ir.InsertionPoint(o), o.location:
            if handler is not None:
                handler(self, o)
            elif not any(isinstance(v.type, ir.VectorType) for v in (*o.operands, *o.results)):
                for region in o.regions:
                    for block in region.blocks:
                        self.block(block)
            elif o.name.startswith(("arith.", "math.")) or o.name == "vector.fma":
                self.elementwise(o)
            else:
                raise CompilerBug(f"unroll-vectors: no rule for '{o.name}': {str(o)[:300]}")

    def new(self, value: Value, chunks: dict[Any, Any] | None = None) -> Tile:
        """An empty tile of `value`'s type, or one of `chunks`."""
        t = ir.VectorType(value.type)
        return Tile(t.shape, t.element_type, self.lanes, chunks)

    def anchor(self, o: Operation) -> InsertionPoint | None:
        """Where lazy values of `o` are built: at `o`, or None (at their first use) where that cannot be told apart.

        That is in a block that writes no memory, for a value that no nested region uses.
        """
        block = o.block
        if any(use.owner.operation.block != block for use in o.results[0].uses):
            return ir.InsertionPoint(o)
        if block not in self.readers:
            self.readers[block] = all(_reads_only(x.operation) for x in block.operations)
        return None if self.readers[block] else ir.InsertionPoint(o)

    def set(self, o: Operation, tile: Tile) -> None:
        """`tile` replaces the one result of `o`."""
        self.tiles[o.results[0]] = tile
        self.dead.append(o)

    def replace(self, o: Operation, values: list[Value]) -> None:
        """Scalars replace the results of `o`."""
        for old, new in zip(o.results, values, strict=True):
            old.replace_all_uses_with(new)
        self.dead.append(o)

    def elementwise(self, o: Operation) -> None:
        """Any op that maps lanes to lanes: once a chunk, and once for chunks that are equal in all operands."""
        attributes = {name: o.attributes[name] for name in o.attributes}
        out = self.new(o.results[0])
        sources = [self.tiles.get(v, v) for v in o.operands]
        groups = computed_groups(o, sources, self.lanes)
        if groups is not None:
            self.set(o, groups)
            return
        seen: dict[tuple[Value, ...], Value] = {}
        for key in out.keys():
            operands = tuple(s.chunk(key) if isinstance(s, Tile) else s for s in sources)
            if operands not in seen:
                seen[operands] = op(o.name, [vec(out.width(key), out.elem)], operands, **attributes)
            out.chunks[key] = seen[operands]
        self.set(o, out)


def _joined(pieces: list[Value]) -> Value:
    """Vectors of one width, two to the power of something, as one."""
    while len(pieces) > 1:
        both = range(2 * ir.VectorType(pieces[0].type).shape[0])
        pieces = [shuffle(a, b, both) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]


def _reads_only(o: Operation) -> bool:
    """Neither writes memory nor has regions."""
    return not len(o.regions) and o.name not in (
        "vector.transfer_write", "vector.scatter", "vector.store", "vector.maskedstore", "memref.store",
        "memref.copy", "func.call")


@unrolls("arith.constant")
def _constant(u: Unroller, o: Operation) -> None:
    if not isinstance(o.results[0].type, ir.VectorType):
        return
    tile = u.new(o.results[0])
    value = ir.DenseElementsAttr(o.attributes["value"])
    by_width: dict[int, Value] = {}
    if value.is_splat:
        scalar = value.get_splat_value()
        for key in tile.keys():
            w = tile.width(key)
            if w not in by_width:
                t = vec(w, tile.elem)
                by_width[w] = op("arith.constant", [t], [], value=ir.DenseElementsAttr.get_splat(t, scalar))
            tile.chunks[key] = by_width[w]
    else:
        flat = [v for v in _elements(value, tile.elem)]
        for n, key in enumerate(tile.keys()):
            row = n // max(1, -(-tile.inner // u.lanes))
            first = row * tile.inner + key[-1] * u.lanes
            tile.chunks[key] = dense_constant(tile.elem, flat[first:first + tile.width(key)])
    u.set(o, tile)


def _elements(value: Value, elem: Type) -> list[Any]:
    if isinstance(elem, ir.FloatType):
        return list(ir.DenseFPElementsAttr(value))
    return [int(v) for v in ir.DenseIntElementsAttr(value)]


@unrolls("vector.step")
def _step(u: Unroller, o: Operation) -> None:
    tile = u.new(o.results[0])
    for key in tile.keys():
        first = key[-1] * u.lanes
        tile.chunks[key] = dense_constant(tile.elem, list(range(first, first + tile.width(key))))
    u.set(o, tile)


@unrolls("ub.poison")
def _poison(u: Unroller, o: Operation) -> None:
    if isinstance(o.results[0].type, ir.VectorType):
        tile = u.new(o.results[0])
        tile.chunks = {k: splat_constant(vec(tile.width(k), tile.elem), 0) for k in tile.keys()}
        u.set(o, tile)


@unrolls("scf.for", "scf.if", "scf.while", "scf.forall")
def _control(u: Unroller, o: Operation) -> None:
    """Control flow that carries n-D vectors is rebuilt with one value a chunk; its ops move into the new regions."""
    carried = [v for v in (*o.operands, *o.results) if isinstance(v.type, ir.VectorType)]
    if not carried:
        for region in o.regions:
            for block in region.blocks:
                u.block(block)
        return
    results, unpack = _flat_types(u, list(o.results))
    operands = _flat_values(u, o.operands)
    new = with_operands(o, operands, results)
    u.dead.append(o)
    for old_region, region in zip(o.regions, new.regions, strict=True):
        for old_block in old_region.blocks:
            _move_block(u, old_block, region)
    unpack(list(new.results))


def _move_block(u: Unroller, old: Block, region: Region) -> None:
    types, unpack = _flat_types(u, list(old.arguments))
    block = region.blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    unpack(list(block.arguments))
    ops = [x.operation for x in old.operations]
    terminator = ops[-1]
    with ir.InsertionPoint(block):
        anchor = owner_op(index(0))
    for x in ops[:-1]:
        x.move_before(anchor)
    for x in ops[:-1]:
        u.visit(x)
    with ir.InsertionPoint(block), terminator.location:
        ir.Operation.create(terminator.name, operands=_flat_values(u, terminator.operands))
    anchor.erase()
    u.dead.append(terminator)


def _flat_values(u: Unroller, values: Sequence[Value]) -> list[Value]:
    out: list[Value] = []
    for v in values:
        out += u.tiles[v].values() if v in u.tiles else [v]
    return out


def _flat_types(u: Unroller, values: list[Value]) -> tuple[list[Type], Callable[[list[Any]], None]]:
    """The types that stand for `values`, and a function that hands the new values out to tiles and uses."""
    types: list[Type] = []
    for v in values:
        if isinstance(v.type, ir.VectorType):
            tile = u.new(v)
            types += [vec(tile.width(k), tile.elem) for k in tile.keys()]
        else:
            types.append(v.type)

    def unpack(new: list[Value]) -> None:
        at = 0
        for v in values:
            if isinstance(v.type, ir.VectorType):
                tile = u.new(v)
                ks = keys(tile.shape, u.lanes)
                tile.chunks = dict(zip(ks, new[at:at + len(ks)], strict=True))
                u.tiles[v] = tile
                at += len(ks)
            else:
                v.replace_all_uses_with(new[at])
                at += 1

    return types, unpack

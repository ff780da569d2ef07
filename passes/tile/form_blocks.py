"""form-blocks: what is gathered or scattered at the places of a block becomes a load or a store of it.

    %i = "tile.iota"() {size = 64}
    %o = "tile.broadcast"(%at) {shape = [64]}
    %p = arith.addi %o, %i
    %m = arith.cmpi slt, %p, %n                  (each below %n)
    %t = "tile.gather"(%x, %zero, %m, %p)
    ->
    %v = "tile.view"(%x, %c0, %s)                (%s: %n, at least 0, at most the size of %x)
    %t = "tile.load"(%v, %zero, %at) {shape = [64]}

Blocks are read and written by vectors, other places element by element. Along each dim of the buffer the position is a
scalar, or a scalar and the number of an element along an axis of the tile. The bounds that a mask is of positions
are the sizes of a view, unless they are the buffer's. What else a mask says chooses among loaded elements; a scatter
with such a mask stays one.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc._mlir import Block, Module, Operation, Value, arith_d, ir, maker
from xcc.dialects import tile as tile_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, op
from xcc.passes.tile.blocks.affine import Affine, affine, block_of, emitted
from xcc.passes.tile.blocks.bounds import Bounds, bounds_of
from xcc.passes.walk import ops_where
from xcc.symbolic import Dim


@register_pass
class FormBlocks(Pass):
    """Loads and stores of blocks in the place of gathers and scatters."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in tile_d.programs_in(module):
            made = _Made(func)
            for source in ops_where(func, lambda op: op.name in ("tile.gather", "tile.scatter")):
                found = _found(source)
                if found is not None:
                    with source.location, ir.InsertionPoint(source):
                        (_load if source.name == "tile.gather" else _store)(source, found, made)


@dataclass(frozen=True)
class _Found:
    """A block: its position and size along each dim of the buffer, what of its mask are bounds, and whether all is."""

    positions: list[Affine]
    sizes: list[int]
    bounds: Bounds
    whole: bool
    shape: list[int]        # of the gather's tile

    @property
    def order(self) -> list[int]:
        """The dims of more than one element, as the tile has them."""
        dims = [d for d, p in enumerate(self.positions) if p.axis is not None and self.sizes[d] > 1]
        return sorted(dims, key=lambda d: self.positions[d].axis or 0)

    @property
    def units(self) -> list[int]:
        """The tile's shape with a one for each axis along which it repeats."""
        axes = [self.positions[d].axis for d in self.order]
        return [n if a in axes else 1 for a, n in enumerate(self.shape)]


def _found(source: Operation) -> _Found | None:
    reads = source.name == "tile.gather"
    mask, *places = list(source.operands)[2:]
    shape = list(ir.VectorType(mask.type).shape)
    axes = tuple(range(len(shape)))
    positions = [affine(p, axes) for p in places]
    known = [p for p in positions if p is not None]
    sizes = block_of(known, shape) if len(known) == len(positions) else None
    if sizes is None:
        return None
    found = _Found(known, sizes, *bounds_of(mask, known, axes), shape)
    if not reads and (not found.whole or found.units != shape):
        return None
    return found


class _Made:
    """Offsets and views that have been made: accesses of one place have the same ones."""

    def __init__(self, func: Operation) -> None:
        self.dims: dict[Value, tuple[Dim, ...]] = dict(zip(
            func.operation.regions[0].blocks[0].arguments, (p.dims for p in tile_d.parameters_of(func)), strict=True))
        self._scalars: list[tuple[Block, Affine, Value]] = []
        self._views: list[tuple[Block, Value, Bounds, Value]] = []

    def scalar(self, x: Affine, block: Block) -> Value:
        made = next((v for b, y, v in self._scalars if b == block and x.like(y)), None)
        if made is None:
            made = emitted(x)
            self._scalars.append((block, x, made))
        return made

    def view(self, buffer: Value, bounds: Bounds, block: Block) -> Value:
        """The part of a buffer that lies below the bounds; the buffer where they are its own sizes."""
        bounds = [(d, x) for d, x in bounds if not self._covers(buffer, d, x)]
        if not bounds:
            return buffer
        for b, v, given, made in self._views:
            if b == block and v == buffer and len(given) == len(bounds) \
                    and all(d == e and x.like(y) for (d, x), (e, y) in zip(bounds, given, strict=True)):
                return made
        rank = ir.MemRefType(buffer.type).rank
        sizes = [op("memref.dim", [ir.IndexType.get()], [buffer, index(d)]) for d in range(rank)]
        for d, x in bounds:
            sizes[d] = arith_d.minsi(sizes[d], arith_d.maxsi(self.scalar(x, block), index(0)))
        made = tile_d.view(buffer, [index(0)] * rank, sizes)
        self._views.append((block, buffer, bounds, made))
        return made

    def _covers(self, buffer: Value, d: int, bound: Affine) -> bool:
        """Whether a bound is known to be the size along dim `d`, or more."""
        size = ir.MemRefType(buffer.type).shape[d]
        if bound.known() is not None:
            return bool(0 <= size <= bound.constant)
        source = maker(bound.plus[0], "memref.dim") if len(bound.plus) == 1 and not bound.minus else None
        number = None if source is None else int_constant(source.operands[1])
        if source is None or number is None or bound.constant < 0:
            return False
        of = source.operands[0]
        return bool(of == buffer and number == d) or (
            of in self.dims and buffer in self.dims and bool(self.dims[of][number] == self.dims[buffer][d]))


def _load(source: Operation, found: _Found, made: _Made) -> None:
    buffer, other, mask = list(source.operands)[:3]
    block = source.block
    view = made.view(buffer, found.bounds, block)
    a = tile_d.attrs_of(source)
    value = tile_d.load(view, other, [made.scalar(p, block) for p in found.positions], shape=tuple(found.sizes),
                        inside=a.inside and found.whole and not found.bounds)
    order = found.order
    value = _reshaped(value, [found.sizes[d] for d in sorted(order)])
    if order != sorted(order):
        value = tile_d.transpose(value, order=tuple(sorted(order).index(d) for d in order))
    value = _reshaped(value, found.units)
    if found.units != found.shape:
        value = tile_d.broadcast(value, shape=tuple(found.shape))
    if not found.whole:
        value = arith_d.select(mask, value, tile_d.broadcast(other, shape=tuple(found.shape)))
    source.results[0].replace_all_uses_with(value)
    source.erase()


def _store(source: Operation, found: _Found, made: _Made) -> None:
    value, buffer = list(source.operands)[:2]
    block = source.block
    view = made.view(buffer, found.bounds, block)
    order = found.order
    value = _reshaped(value, [found.sizes[d] for d in order])
    if order != sorted(order):
        value = tile_d.transpose(value, order=tuple(order.index(d) for d in sorted(order)))
    tile_d.store(_reshaped(value, found.sizes), view, [made.scalar(p, block) for p in found.positions])
    source.erase()


def _reshaped(value: Value, shape: list[int]) -> Value:
    """A tile of `shape`; where that is (), of one element."""
    shape = shape or [1]
    return value if list(ir.VectorType(value.type).shape) == shape else tile_d.reshape(value, shape=tuple(shape))

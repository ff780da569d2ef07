"""unroll-vectors, memory: transfers with permutation maps and masks, gather, scatter, masks.

A chunk whose lanes run along the last memory dimension is one (masked) vector load. Where another vector
dimension runs along it, the tile is read in memory order and transposed in registers. What is left is scalars:
their addresses are clamped to element 0 where the mask is off, so no access leaves the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from xcc._mlir import ir
from xcc.passes.vector.group_tiles import GroupTile, concatenated, read_group, widened_mask
from xcc.passes.vector.tiles import (
    Key,
    MaskTile,
    ScalarTile,
    Tile,
    extract,
    index,
    op,
    pack,
    splat,
    vec,
)
from xcc.passes.vector.unroll import Unroller, unrolls
from xcc.passes.vector.unroll_shape import transposed

NOTHING: Mapping[str, Any] = MappingProxyType({})

class Transfer:
    """One transfer_read or transfer_write, decoded. `dims[v]` is the memory dimension of vector dim v, or None."""

    def __init__(self, u: Unroller, o: Any, memory: Any, first_index: int, vector_type: Any, mask: Any) -> None:
        self.u = u
        self.memory = memory
        rank = ir.MemRefType(memory.type).rank
        self.rank = rank
        strides, _ = ir.MemRefType(memory.type).get_strides_and_offset()
        self.contiguous = not rank or strides[-1] == 1
        self.indices = list(o.operands)[first_index:first_index + rank]
        t = ir.VectorType(vector_type)
        self.shape, self.elem = tuple(t.shape), t.element_type
        self.dims = [_position(r) for r in _affine_map(o.attributes["permutation_map"]).results]
        self.mask: Tile | None = u.tiles[mask] if mask is not None else None
        if isinstance(self.mask, MaskTile) and self.mask.full():
            self.mask = None
        used = sorted(d for d in self.dims if d is not None)
        self.mask_order = [self.dims.index(d) for d in used]

    def permuted(self, order: list[int]) -> Transfer:
        """The same transfer with the vector's dimensions in another order."""
        out = object.__new__(Transfer)
        out.__dict__.update(self.__dict__)
        out.shape = tuple(self.shape[i] for i in order)
        out.dims = [self.dims[i] for i in order]
        used = sorted(d for d in out.dims if d is not None)
        out.mask_order = [out.dims.index(d) for d in used]
        return out

    def straight(self) -> bool:
        return bool(self.dims) and self.contiguous and self.dims[-1] == self.rank - 1

    def memory_order(self) -> list[int] | None:
        """An order of the vector's dims that ends with the contiguous one, if there is one worth a transpose."""
        if self.rank - 1 not in self.dims or not self.contiguous:
            return None
        inner = self.dims.index(self.rank - 1)
        if self.shape[inner] < 2:
            return None
        return [i for i in range(len(self.dims)) if i != inner] + [inner]

    def tile(self) -> Tile:
        return Tile(self.shape, self.elem, self.u.lanes)

    def mask_lane(self, at: Key) -> Any:
        assert self.mask is not None
        return self.mask.lane(tuple(at[i] for i in self.mask_order))

    def mask_chunk(self, key: Key, width: int) -> Any:
        """The mask of one chunk of data, whatever way the mask's own lanes run."""
        assert self.mask is not None
        if self.mask_order and self.mask_order[-1] == len(self.shape) - 1:
            return self.mask.chunk(tuple(key[i] for i in self.mask_order))
        first = key[-1] * self.u.lanes
        lanes = [self.mask_lane(key[:-1] + (first + i,)) for i in range(width)]
        return pack(lanes)

    def address(self, at: Key) -> list[Any]:
        """The memory indices of the element at full vector coordinates `at`."""
        out = list(self.indices)
        for v, d in enumerate(self.dims):
            if d is not None and at[v]:
                out[d] = op("arith.addi", [out[d].type], [out[d], index(at[v])])
        return out

    def masked_address(self, at: Key) -> list[Any]:
        """As `address`; a row that is wholly masked is the first one instead.

        No lane of it is touched, but where it lies in a page that the program does not have, the processor takes
        hundreds of cycles to find that out.
        """
        out = list(self.indices)
        for v, d in enumerate(self.dims):
            if d is None or not at[v]:
                continue
            on = self.mask.within(self.mask_order.index(v), at[v]) \
                if isinstance(self.mask, MaskTile) and v + 1 < len(self.dims) else None
            step = index(at[v]) if on is None else op("arith.select", [out[d].type], [on, index(at[v]), index(0)])
            out[d] = op("arith.addi", [out[d].type], [out[d], step])
        return out

    def chunk_start(self, key: Key) -> Key:
        return key[:-1] + (key[-1] * self.u.lanes,) if self.shape else ()

    def load_scalar(self, at: Key, padding: Any) -> Any:
        """One element, or `padding` where the mask is off; never reads outside the buffer."""
        address = self.address(at)
        if self.mask is None:
            return op("memref.load", [self.elem], [self.memory, *address])
        on = self.mask_lane(at)
        zero = index(0)
        safe = [op("arith.select", [i.type], [on, i, zero]) for i in address]
        loaded = op("memref.load", [self.elem], [self.memory, *safe])
        return op("arith.select", [self.elem], [on, loaded, padding])


    def grouped(self) -> bool:
        """Whether whole groups, the last dim of the vector, lie in memory one after the other, masked along one dim."""
        if not self.straight() or None in self.dims:
            return False
        strides, _ = ir.MemRefType(self.memory.type).get_strides_and_offset()
        lane = self.dims[-2] if len(self.dims) > 1 else None
        self.adjacent = lane is not None and strides[lane] == self.shape[-1]
        return self.mask is None or (isinstance(self.mask, MaskTile) and lane is not None and self.adjacent
                                     and self._masks_lanes(lane))

    def _masks_lanes(self, lane: int) -> bool:
        assert isinstance(self.mask, MaskTile)
        at = [self.mask_order.index(v) for v in range(len(self.dims)) if self.dims[v] != lane]
        bounds, shape = self.mask.bounds, self.mask.shape
        return all(isinstance(bounds[i], int) and bounds[i] >= shape[i] for i in at)

    def load_group(self, at: Key) -> Any:
        """The group at outer coordinates `at`."""
        return read_group(self.memory, self.address((*at, 0)), self.shape[-1])

    def load_groups(self, at: Key, width: int) -> Any:
        """`width` groups from number at[-1] * lanes of the last outer dim on."""
        first = (*at[:-1], at[-1] * self.u.lanes)
        if not self.adjacent:
            return concatenated([self.load_group((*first[:-1], first[-1] + i)) for i in range(width)])
        mask = None
        if self.mask is not None:
            lanes = [self.mask_lane((*first[:-1], first[-1] + i, 0)) for i in range(width)]
            mask = widened_mask(pack(lanes), self.shape[-1])
        return read_group(self.memory, self.address((*first, 0)), width * self.shape[-1], mask)


def _affine_map(attr: Any) -> Any:
    return ir.AffineMapAttr(attr).value


def _position(expr: Any) -> int | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return None
    return int(ir.AffineDimExpr(expr).position)


@unrolls("vector.transfer_read")
def _read(u: Unroller, o: Any) -> None:
    rank = ir.MemRefType(o.operands[0].type).rank
    mask = o.operands[rank + 2] if len(o.operands) > rank + 2 else None
    t = Transfer(u, o, o.operands[0], 1, o.results[0].type, mask)
    padding = o.operands[rank + 1]
    if _in_groups(o) and t.grouped():
        u.set(o, GroupTile(t.shape, t.elem, u.lanes, t.load_group, t.load_groups, u.anchor(o)))
        return
    order = None if t.straight() else t.memory_order()
    if order is not None and not _only_scalars_wanted(o):
        straight = _read_tile(t.permuted(order), padding)
        u.set(o, transposed(straight, [order.index(i) for i in range(len(order))]))
    elif t.straight() and not _only_scalars_wanted(o):
        u.set(o, _read_tile(t, padding))
    elif t.dims and t.dims[-1] is None and not t.straight():
        u.set(o, _read_tile(t, padding))
    else:
        u.set(o, ScalarTile(t.shape, t.elem, u.lanes, lambda at: t.load_scalar(at, padding), u.anchor(o)))


def _in_groups(o: Any) -> bool:
    """True where every use is a contract that sums groups of elements."""
    from xcc.passes.vector.unroll_contract import wants_groups

    uses = list(o.results[0].uses)
    return bool(uses) and all(wants_groups(use.owner, use.operand_number) for use in uses)


def _only_scalars_wanted(o: Any) -> bool:
    """True where every use is the operand of a contract whose elements are broadcast one by one."""
    from xcc.passes.vector.unroll_contract import wants_scalars

    uses = list(o.results[0].uses)
    return bool(uses) and all(wants_scalars(use.owner, use.operand_number) for use in uses)


def _read_tile(t: Transfer, padding: Any) -> Tile:
    tile = t.tile()
    seen: dict[Key, Any] = {}
    for key in tile.keys():
        distinct = tuple(p for v, p in enumerate(key) if not t.dims or t.dims[v] is not None)
        if distinct not in seen:
            seen[distinct] = _read_chunk(t, key, tile.width(key), padding)
        chunk = seen[distinct]
        have = ir.VectorType(chunk.type).shape[0]
        tile.chunks[key] = chunk if have == tile.width(key) else splat(extract(chunk, 0), tile.width(key))
    return tile


def _read_chunk(t: Transfer, key: Key, width: int, padding: Any) -> Any:
    start = t.chunk_start(key)
    result = vec(width, t.elem)
    if t.straight():
        if t.mask is None:
            return op("vector.load", [result], [t.memory, *t.address(start)])
        return op("vector.maskedload", [result], [t.memory, *t.masked_address(start), t.mask_chunk(key, width),
                                                  splat(padding, width)])
    return splat(t.load_scalar(start, padding), width)


@unrolls("vector.transfer_write")
def _write(u: Unroller, o: Any) -> None:
    rank = ir.MemRefType(o.operands[1].type).rank
    mask = o.operands[rank + 2] if len(o.operands) > rank + 2 else None
    t = Transfer(u, o, o.operands[1], 2, o.operands[0].type, mask)
    tile = u.tiles[o.operands[0]]
    order = None if t.straight() else t.memory_order()
    if order is not None:
        t, tile = t.permuted(order), transposed(tile, order)
    if "xcc.stream" in o.attributes and t.straight() and t.mask is None:
        _write_past_caches(t, tile)
    else:
        for key in tile.keys():
            _write_chunk(t, tile, key)
    u.dead.append(o)


def _write_past_caches(t: Transfer, tile: Tile) -> None:
    """Non-temporal stores where the buffer is aligned, which the loops' steps then keep; plain ones where it is not.

    Threads see each other's results since a region of the pool ends with a locked instruction (targets/cpu/threads.ll),
    which waits for these stores too.
    """
    width = t.u.lanes * max(1, t.elem.width // 8)
    base = op("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [t.memory])
    rest = op("arith.andi", [base.type], [base, index(width - 1)])
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    aligned = op("arith.cmpi", [ir.IntegerType.get_signless(1)], [rest, index(0)], predicate=equal)
    branch = ir.Operation.create("scf.if", operands=[aligned], regions=2)
    for number, region in enumerate(branch.regions):
        with ir.InsertionPoint(region.blocks.append()):
            for key in tile.keys():
                _write_chunk(t, tile, key, {} if number else {
                    "nontemporal": ir.BoolAttr.get(True),
                    "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), width)})
            op("scf.yield", [], [])


def _write_chunk(t: Transfer, tile: Tile, key: Key, how: Mapping[str, Any] = NOTHING) -> None:
    """`how`: attributes of a whole chunk's store."""
    start, width, chunk = t.chunk_start(key), tile.width(key), tile.chunk(key)
    if t.straight() and t.mask is None:
        op("vector.store", [], [chunk, t.memory, *t.address(start)], **how)
    elif t.straight():
        op("vector.maskedstore", [], [t.memory, *t.masked_address(start), t.mask_chunk(key, width), chunk])
    else:
        for i in range(width):
            at = key[:-1] + (start[-1] + i,) if t.shape else ()
            if t.mask is None:
                op("memref.store", [], [extract(chunk, i), t.memory, *t.address(at)])
            else:
                _store_if(t.mask_lane(at), extract(chunk, i), t.memory, t.address(at))


def _store_if(condition: Any, value: Any, memory: Any, address: list[Any]) -> None:
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    block = branch.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        op("memref.store", [], [value, memory, *address])
        op("scf.yield", [], [])


@unrolls("vector.create_mask")
def _create_mask(u: Unroller, o: Any) -> None:
    shape = ir.VectorType(o.results[0].type).shape
    bounds = [_known(v) for v in o.operands]
    u.set(o, MaskTile(shape, bounds, u.lanes, ir.InsertionPoint(o)))


@unrolls("vector.constant_mask")
def _constant_mask(u: Unroller, o: Any) -> None:
    shape = ir.VectorType(o.results[0].type).shape
    bounds = list(ir.DenseI64ArrayAttr(o.attributes["mask_dim_sizes"]))
    u.set(o, MaskTile(shape, bounds, u.lanes, ir.InsertionPoint(o)))


def _known(value: Any) -> Any:
    """The int behind a constant index, else the value."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
        return int(ir.IntegerAttr(owner.operation.attributes["value"]).value)
    return value


@unrolls("vector.gather", "vector.scatter")
def _gather(u: Unroller, o: Any) -> None:
    """gather(base, offsets, indices, mask, pass_thru) and scatter(base, offsets, indices, mask, value)."""
    operands = list(o.operands)
    base, offsets = operands[:-3], operands[-3:]
    indices, mask, last = (u.tiles[v] for v in offsets)
    out = u.new(o.results[0]) if len(o.results) else None
    seen: dict[Any, Any] = {}
    for key in last.keys():
        at = (indices.chunk(key), mask.chunk(key), last.chunk(key))
        if out is None:
            op(o.name, [], [*base, *at])
            continue
        if at not in seen:
            seen[at] = op(o.name, [vec(out.width(key), out.elem)], [*base, *at])
        out.chunks[key] = seen[at]
    if out is None:
        u.dead.append(o)
    else:
        u.set(o, out)

"""unroll-vectors, memory: transfers with permutation maps and masks, gather, scatter, masks.

A chunk whose lanes run along the last memory dimension is one (masked) vector load. Where another vector
dimension runs along it, the tile is read in memory order and transposed in registers. What is left is scalars:
their addresses are clamped to element 0 where the mask is off, so no access leaves the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.transposes import concatenated, interleaved, picked
from xcc.passes.shared.values import dense_constant, extract, index, op, shuffle, splat, vec
from xcc.passes.vector.unroll.group_tiles import GroupTile
from xcc.passes.vector.unroll.tiles import Key, MaskTile, ScalarTile, Tile, keys
from xcc.passes.vector.unroll.transfer import Transfer
from xcc.passes.vector.unroll.unroll_shape import Transposed, transposed
from xcc.passes.vector.unroll.unroller import Unroller, unrolls

TURNING = ("vector.transpose", "vector.multi_reduction")       # short rows become columns
NOTHING: Mapping[str, Any] = MappingProxyType({})


@unrolls("vector.transfer_read")
def _read(u: Unroller, o: Operation) -> None:
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
    elif t.whole_rows() > 1 and all(use.owner.name in TURNING for use in o.results[0].uses):
        u.set(o, _read_rows(t))
    elif t.straight() and not _only_scalars_wanted(o):
        u.set(o, _read_tile(t, padding))
    elif t.dims and t.dims[-1] is None and not t.straight():
        u.set(o, _read_tile(t, padding))
    elif (rows := t.around_column()) is not None and not _only_scalars_wanted(o):
        u.set(o, _read_column(t, rows, padding))
    elif (step := t.apart()) > 1 and not _only_scalars_wanted(o):
        u.set(o, _read_apart(t, step, padding))
    else:
        u.set(o, ScalarTile(t.shape, t.elem, u.lanes, lambda at: t.load_scalar(at, padding), u.anchor(o)))


def _in_groups(o: Operation) -> bool:
    """True where every use is a contract that sums groups of elements, or computes elements of such groups alone."""
    from xcc.passes.vector.unroll.unroll_contract import wants_groups

    uses = list(o.results[0].uses)
    return bool(uses) and all(wants_groups(use.owner, use.operand_number)
                              or use.owner.name.startswith("arith.") and _in_groups(use.owner) for use in uses)


def _only_scalars_wanted(o: Operation) -> bool:
    """True where every use is the operand of a contract whose elements are broadcast one by one."""
    from xcc.passes.vector.unroll.unroll_contract import wants_scalars

    uses = list(o.results[0].uses)
    return bool(uses) and all(wants_scalars(use.owner, use.operand_number) for use in uses)


def _read_tile(t: Transfer, padding: Value) -> Tile:
    tile = t.tile()
    seen: dict[Key, Value] = {}
    for key in tile.keys():
        distinct = tuple(p for v, p in enumerate(key) if not t.dims or t.dims[v] is not None)
        if distinct not in seen:
            seen[distinct] = _read_chunk(t, key, tile.width(key), padding)
        chunk = seen[distinct]
        have = ir.VectorType(chunk.type).shape[0]
        tile.chunks[key] = chunk if have == tile.width(key) else splat(extract(chunk, 0), tile.width(key))
    return tile


def _read_rows(t: Transfer) -> Tile:
    """A tile of short rows, several of which are read at once, for what turns them."""
    tile, count, row = t.tile(), t.whole_rows(), t.shape[-1]
    for key in [k for k in tile.keys() if k[-2] % count == 0]:
        rows = min(count, t.shape[-2] - key[-2])
        whole = op("vector.load", [vec(rows * row, t.elem)], [t.memory, *t.address(t.chunk_start(key))])
        for i in range(rows):
            tile.chunks[*key[:-2], key[-2] + i, 0] = shuffle(whole, whole, range(i * row, (i + 1) * row))
    return tile


def _read_column(t: Transfer, rows: Transfer, padding: Value) -> Tile:
    """A column of short `rows`, of which whole vectors are read: another column's are the same."""
    tile, mask, row, number = t.tile(), rows.mask_of_rows(), rows.shape[-1], int_constant(t.indices[-1]) or 0
    for key in tile.keys():
        width, parts = tile.width(key), []
        for n in range(row):
            start = (*t.chunk_start(key), n * width)
            if mask is None:
                parts.append(op("vector.load", [vec(width, t.elem)], [t.memory, *rows.address(start)]))
            else:
                on = mask.chunk((*key[:-1], key[-1] * row + n))
                parts.append(op("vector.maskedload", [vec(width, t.elem)],
                                [t.memory, *rows.masked_address(start), on, splat(padding, width)]))
        tile.chunks[key] = picked(parts, [divmod(i * row + number, width) for i in range(width)])
    return tile


def _read_apart(t: Transfer, step: int, padding: Value) -> Tile:
    """Elements `step` apart: of as many whole vectors, masked behind the last element, those that are wanted."""
    tile, lanes, (count,), memory = t.tile(), t.u.lanes, t.shape, t.together(step)
    first = op("arith.muli", [t.indices[0].type], [t.indices[0], index(step)])
    bound = t.mask.bounds[0] if isinstance(t.mask, MaskTile) else count
    at = t.mask.at if isinstance(t.mask, MaskTile) else ir.InsertionPoint.current
    if isinstance(bound, int):
        last: Value | int = (min(bound, count) - 1) * step + 1
    else:
        with at:
            spread = op("arith.muli", [bound.type], [bound, index(step)])
            last = op("arith.subi", [bound.type], [spread, index(step - 1)])
    mask = MaskTile((count * step,), [last], lanes, at)
    for key in tile.keys():
        parts = []
        for n in range(key[0] * step, (key[0] + 1) * step):
            place = op("arith.addi", [first.type], [first, index(n * lanes)])
            if isinstance(last, int) and (n + 1) * lanes <= last:
                parts.append(op("vector.load", [vec(lanes, t.elem)], [memory, place]))
            else:
                parts.append(op("vector.maskedload", [vec(lanes, t.elem)],
                                [memory, place, mask.chunk((n,)), splat(padding, lanes)]))
        tile.chunks[key] = picked(parts, [divmod(i * step, lanes) for i in range(lanes)])
    return tile


def _read_chunk(t: Transfer, key: Key, width: int, padding: Value) -> Value:
    start = t.chunk_start(key)
    result = vec(width, t.elem)
    if t.straight():
        if _odd(width, t.elem):
            whole = vec(2 * (width - 1), t.elem)
            wide = op("vector.maskedload", [whole], [*_odd_place(t, key, width), splat(padding, whole.shape[0])])
            return shuffle(wide, wide, range(width))
        if t.mask is None:
            return op("vector.load", [result], [t.memory, *t.address(start)])
        return op("vector.maskedload", [result], [t.memory, *t.masked_address(start), t.mask_chunk(key, width),
                                                  splat(padding, width)])
    return splat(t.load_scalar(start, padding), width)


def _odd(width: int, elem: Type) -> bool:
    """Whether a chunk is read and written as the first lanes of one twice as wide: LLVM dies of vectors of one bf16
    more than a register has, where it knows instructions for bf16."""
    register = width - 1
    return isinstance(elem, ir.BF16Type) and register >= 8 and not register & (register - 1)


def _odd_place(t: Transfer, key: Key, width: int) -> list[Value]:
    """Memory, address and mask of such a chunk."""
    start, i1 = t.chunk_start(key), ir.IntegerType.get_signless(1)
    on = dense_constant(i1, [1] * width) if t.mask is None else t.mask_chunk(key, width)
    mask = shuffle(on, dense_constant(i1, [0]), [min(i, width) for i in range(2 * (width - 1))])
    return [t.memory, *(t.address(start) if t.mask is None else t.masked_address(start)), mask]


@unrolls("vector.transfer_write")
def _write(u: Unroller, o: Operation) -> None:
    rank = ir.MemRefType(o.operands[1].type).rank
    mask = o.operands[rank + 2] if len(o.operands) > rank + 2 else None
    t = Transfer(u, o, o.operands[1], 2, o.operands[0].type, mask)
    tile = u.tiles[o.operands[0]]
    order = None if t.straight() else t.memory_order()
    if order is not None:
        t, tile = t.permuted(order), transposed(tile, order)
    rows = t.whole_rows()
    if isinstance(tile, Transposed) and t.short_rows():
        _write_columns(t, tile)
    elif rows > 1:
        for key in [k for k in tile.keys() if k[-2] % rows == 0]:
            parts = [tile.chunk((*key[:-2], key[-2] + i, 0)) for i in range(min(rows, t.shape[-2] - key[-2]))]
            op("vector.store", [], [concatenated(parts), t.memory, *t.address(t.chunk_start(key))])
    elif "xcc.stream" in o.attributes and t.straight() and t.mask is None:
        _write_past_caches(t, tile)
    else:
        for key in tile.keys():
            _write_chunk(t, tile, key)
    u.dead.append(o)


def _write_columns(t: Transfer, tile: Tile) -> None:
    """Short rows that lie one after the other, of which a transpose makes the columns: those are interleaved."""
    *outer, rows, row = range(len(tile.shape))
    columns, mask = transposed(tile, [*outer, row, rows]), t.mask_of_rows()
    for key in keys((*tile.shape[:-2], tile.shape[-2]), tile.lanes):
        parts = interleaved([columns.chunk((*key[:-1], i, key[-1])) for i in range(tile.inner)])
        for n, part in enumerate(parts):
            start = (*key[:-1], key[-1] * tile.lanes, n * ir.VectorType(part.type).shape[0])
            if mask is None:
                op("vector.store", [], [part, t.memory, *t.address(start)])
            else:
                on = mask.chunk((*key[:-1], key[-1] * tile.inner + n))
                op("vector.maskedstore", [], [t.memory, *t.masked_address(start), on, part])


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
    if t.straight() and _odd(width, t.elem):
        wide = shuffle(chunk, chunk, [min(i, width - 1) for i in range(2 * (width - 1))])
        op("vector.maskedstore", [], [*_odd_place(t, key, width), wide])
    elif t.straight() and t.mask is None:
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


def _store_if(condition: Any, value: Value, memory: Any, address: list[Any]) -> None:
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    block = branch.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        op("memref.store", [], [value, memory, *address])
        op("scf.yield", [], [])


@unrolls("vector.create_mask")
def _create_mask(u: Unroller, o: Operation) -> None:
    shape = ir.VectorType(o.results[0].type).shape
    bounds = [_known(v) for v in o.operands]
    u.set(o, MaskTile(shape, bounds, u.lanes, ir.InsertionPoint(o)))


@unrolls("vector.constant_mask")
def _constant_mask(u: Unroller, o: Operation) -> None:
    shape = ir.VectorType(o.results[0].type).shape
    bounds = list(ir.DenseI64ArrayAttr(o.attributes["mask_dim_sizes"]))
    u.set(o, MaskTile(shape, bounds, u.lanes, ir.InsertionPoint(o)))


def _known(value: Value) -> Value | int:
    """The int behind a constant index, else the value."""
    number = int_constant(value)
    return value if number is None else number


@unrolls("vector.gather", "vector.scatter")
def _gather(u: Unroller, o: Operation) -> None:
    """gather(base, offsets, indices, mask, pass_thru) and scatter(base, offsets, indices, mask, value)."""
    operands = list(o.operands)
    base, offsets = operands[:-3], operands[-3:]
    indices, mask, last = (u.tiles[v] for v in offsets)
    out = u.new(o.results[0]) if len(o.results) else None
    seen: dict[tuple[Value, Value, Value], Value] = {}
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

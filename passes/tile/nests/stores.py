"""Stores of block values: through the caches, or past them where the buffer is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Operation, Type, Value, arith_d, ir, scf_d
from xcc.passes.shared.values import conjunction, index, op, splat_constant, vec
from xcc.passes.tile.lowering.views import add, mul, value_of
from xcc.passes.tile.nests.choice import dims_of, scans_of, written_scan
from xcc.passes.tile.nests.kept import Coords, stepped
from xcc.passes.tile.nests.pieces import Pieces, memref_stride, transfer_mask, transfer_place
from xcc.passes.tile.nests.scans import scan_nest
from xcc.passes.tile.nests.together import read_ahead, stores_with

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

STREAM = "xcc.stream"       # of a vector.transfer_write: from how many bytes of its buffer on it is past the caches
LINE = 64                   # bytes of a cache line
_I = arith_d.CmpIPredicate


def may_stream(source: Operation) -> bool:
    """Whether a store writes whole lines of the cache, a vector after the other."""
    if source.name != "vector.transfer_write":
        return False
    kind, memref = ir.VectorType(source.operands[0].type), ir.MemRefType(source.operands[1].type)
    dims = dims_of(source)
    size = next((n for n, d in zip(kind.shape, dims, strict=True) if d == memref.rank - 1), 0)
    return bool(size * _bytes(memref) >= 2 * LINE and _bytes(memref) >= 2)


def _bytes(memref: Type) -> int:
    return int(memref.element_type.width) // 8


def _write(r: Retiler, source: Operation) -> None:
    """vector.transfer_write: those of one nest together, where the last of them stands"""
    stores = stores_with(source)
    if source != stores[-1]:
        return
    large = conjunction(_streams(r, s) if STREAM in s.attributes else None for s in stores)
    if large is None:
        _nest(r, stores, {})
        return
    branch = scf_d.IfOp(large, has_else=True)
    for block, how in ((branch.then_block, {"nontemporal": ir.BoolAttr.get(True)}), (branch.else_block, {})):
        with ir.InsertionPoint(block):
            _nest(r, stores, how)
            scf_d.yield_([])


def _nest(r: Retiler, stores: list[Operation], how: dict[str, Attribute]) -> None:
    """The loops around the stores; those past the caches, of whole vectors, have the attributes `how`."""
    value = stores[0].operands[0]
    shape = ir.VectorType(value.type).shape
    dims = dims_of(stores[0])
    rank = ir.MemRefType(stores[0].operands[1].type).rank
    along = next((i for i, d in enumerate(dims) if d == rank - 1 and shape[i] > 1), -1)
    order = sorted(range(len(dims)), key=lambda i: dims[i])

    def body(coords: Coords, lane: int, width: int) -> None:
        pieces = Pieces(r)
        for n, store in enumerate(stores):
            for later in stores[n + 1:]:
                read_ahead(pieces, later.operands[0], store, coords, lane, width)
            _store_piece(r, pieces, store, coords, lane, width, how if STREAM in store.attributes else {})

    scan = next((o for o in scans_of(value) if written_scan(o)), None)
    if scan is None:
        r.nest(shape, body, along, order)
    else:
        scan_nest(r, scan, shape, along, order, body)


def _store_piece(r: Retiler, pieces: Pieces, source: Operation, coords: Coords, lane: int, width: int,
                 how: dict[str, Attribute]) -> None:
    """The part of a store whose piece begins at `coords`."""
    piece = pieces.of(source.operands[0], coords, lane, width)
    memref, places, where = transfer_place(r, source, coords, 2)
    mask = transfer_mask(pieces, source, coords, lane, width, where)
    if where[lane] == len(places) - 1:
        _store(piece, memref, places, mask, how)
        return
    every = mask if mask is not None else splat_constant(vec(width, ir.IntegerType.get_signless(1)), 1)
    op("vector.scatter", [], [memref, *places, stepped(width, memref_stride(memref, where[lane])), every, piece])


def _store(piece: Value, memref: Value, places: list[Value], mask: Value | None, how: dict[str, Attribute]) -> None:
    kind = ir.VectorType(piece.type)
    if mask is not None and not _is_true(mask):
        op("vector.maskedstore", [], [memref, *places, mask, piece])
        return
    if how:
        bytes = min(LINE, kind.shape[0] * kind.element_type.width // 8)
        how = how | {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bytes)}
    op("vector.store", [], [piece, memref, *places], **how)


def _is_true(mask: Value) -> bool:
    """Whether a mask is known to let everything through."""
    owner = mask.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    value = ir.DenseElementsAttr(owner.operation.attributes["value"])
    return value.is_splat and bool(ir.IntegerAttr(value.get_splat_value()).value)


def _streams(r: Retiler, source: Operation) -> Value:
    """Whether the buffer is large, and the tile's rows begin at lines."""
    memref, places, _ = transfer_place(r, source, (0,) * ir.VectorType(source.operands[0].type).rank, 2)
    kind = ir.MemRefType(memref.type)
    strides = [memref_stride(memref, d) for d in range(kind.rank)]
    at: Any = 0
    for p, s in zip(places, strides, strict=True):
        at = add(at, mul(p, s))
    base = op("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [memref])
    bits = arith_d.addi(base, value_of(mul(at, _bytes(kind))))
    for d in dims_of(source):
        if d < kind.rank - 1:
            bits = arith_d.ori(bits, value_of(mul(strides[d], _bytes(kind))))
    aligned = arith_d.cmpi(_I.eq, arith_d.andi(bits, index(LINE - 1)), index(0))
    first = kind.shape[0] if kind.shape[0] >= 0 else op("memref.dim", [ir.IndexType.get()], [memref, index(0)])
    size = value_of(mul(mul(first, strides[0]), _bytes(kind)))
    large = arith_d.cmpi(_I.sgt, size, index(ir.IntegerAttr(source.attributes[STREAM]).value))
    return arith_d.andi(aligned, large)


HANDLERS: dict[str, Callable[..., None]] = {"vector.transfer_write": _write}

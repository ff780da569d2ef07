"""Prefetches of the tiles of later instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.values import index, op, with_operands
from xcc.passes.tile.lowering.views import add, value_of
from xcc.passes.tile.nests.choice import FUNCTION, LINE, cost_of, dims_of, is_lazy
from xcc.passes.tile.nests.kept import Coords

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

FETCHED = "xcc.fetched"     # of a vector.transfer_read: which later instance's tile is asked for, and into which cache
LOCALITY = 4                # of a memref.prefetch into the first cache, and one


def dear_pass(read: Operation) -> Operation | None:
    """The reduction in the block of `read` whose loops fetch later tiles: the first that walks as many places and waits
    for arithmetic. None where there is none, or the tile is no lines of memory."""
    kind, memref = ir.VectorType(read.results[0].type), ir.MemRefType(read.operands[0].type)
    if not kind.rank or dims_of(read)[-1] != memref.rank - 1 or kind.shape[-1] * _bytes(memref) < LINE:
        return None
    return next((o.operation for o in read.block.operations if o.operation.name == "vector.multi_reduction"
                 and _sizes(o.operation.operands[0]) == _sizes(read.results[0])
                 and _is_dear(o.operation.operands[0])), None)


def _is_dear(value: Value) -> bool:
    return not isinstance(value.owner, ir.Block) and is_lazy(value.owner.operation) \
        and cost_of(value.owner.operation) >= FUNCTION


def _sizes(value: Value) -> list[int]:
    return [n for n in ir.VectorType(value.type).shape if n > 1]


def fetching(r: Retiler, reduction: Operation) -> Callable[[Coords, int, int], None]:
    """`fetch(coords, lane, width)` asks for the lines of later tiles that lie where the reduction's piece does."""
    fetches = [_fetch(r, o.operation, reduction) for o in reduction.block.operations
               if FETCHED in o.operation.attributes and dear_pass(o.operation) == reduction]

    def fetch(coords: Coords, lane: int, width: int) -> None:
        for one in fetches:
            one(coords, lane, width)

    return fetch


def _fetch(r: Retiler, read: Operation, reduction: Operation) -> Callable[[Coords, int, int], None]:
    number = list(read.parent.regions[0].blocks[0].arguments)[-1]
    turns, cache = ir.DenseI64ArrayAttr(read.attributes[FETCHED])
    known = {number: arith_d.addi(r.get(number), index(turns))}
    memref = r.get(read.operands[0])
    rank, bytes = ir.MemRefType(memref.type).rank, _bytes(ir.MemRefType(memref.type))
    start = [_later(r, v, known) for v in list(read.operands)[1:1 + rank]]
    walked = [d for d, n in zip(dims_of(read), ir.VectorType(read.results[0].type).shape, strict=True) if n > 1]
    large = [d for d, n in enumerate(ir.VectorType(reduction.operands[0].type).shape) if n > 1]
    how = {"isWrite": ir.BoolAttr.get(False), "isDataCache": ir.BoolAttr.get(True),
           "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LOCALITY - cache)}

    def fetch(coords: Coords, lane: int, width: int) -> None:
        places = list(start)
        for d, p in zip(large, walked, strict=True):
            places[p] = add(places[p], coords[d])
        for ahead in range(0, width, LINE // bytes):
            op("memref.prefetch", [], [memref, *map(value_of, places[:-1]), value_of(add(places[-1], ahead))], **how)

    return fetch


def _later(r: Retiler, value: Value, known: dict[Value, Value]) -> Value:
    """What an index is in the instance that `known` begins with."""
    if value not in known:
        source = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if source is None or not source.name.startswith("arith.") or source.name == "arith.constant":
            return r.get(value)
        made = with_operands(source, [_later(r, v, known) for v in source.operands])
        known.update(zip(source.results, made.results, strict=True))
    return known[value]


def _bytes(memref: Type) -> int:
    return max(1, int(memref.element_type.width) // 8)

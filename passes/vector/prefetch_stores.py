"""prefetch-stores: lines that a tile's rows end in are asked for ahead of its stores.

    %t = vector.transpose %x : vector<16x16xf32>             memref.prefetch %y[%i, %j + 15], write ... 16 rows
    vector.transfer_write %t, %y[%i, %j]                ->   vector.transfer_write %t, %y[%i, %j]
    : vector<16x16xf32>, memref<1000x1000xf32>

Processors see no pattern where each store is to another row. One whose line is far holds up those behind it, twice
where it lies across two lines, of which the second one is not asked for before its turn comes.
"""

from __future__ import annotations

import itertools
import math

from xcc._mlir import Module, Operation, Value, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import index, op
from xcc.passes.walk import ops_where

LINE = 64           # bytes
MOST = 64           # lines of a tile
CACHED = 32768      # bytes of a result whose lines are near


@register_pass
class PrefetchStores(Pass):
    """Asks for the ends of rows of whole vectors, of tiles with several rows of a large result."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for write in ops_where(module, lambda o: o.name == "vector.transfer_write"):
            _ask(write)


def _ask(write: Operation) -> None:
    value, memory, *at = write.operands
    t, shape = ir.MemRefType(memory.type), ir.VectorType(value.type).shape
    dims = [ir.AffineDimExpr(r).position for r in ir.AffineMapAttr(write.attributes["permutation_map"]).value.results]
    last, step = t.rank - 1, LINE * 8 // t.element_type.width
    if len(at) != t.rank or last not in dims or "xcc.stream" in write.attributes or not _is_far(memory):
        return
    sizes = {d: size for d, size in zip(dims, shape, strict=True) if size > 1}
    columns = sizes.pop(last, 1)
    lines = math.prod(sizes.values()) * columns // step
    if columns % step or not sizes or lines > MOST:
        return
    with ir.InsertionPoint(write), write.location:
        for row in itertools.product(*map(range, sizes.values())):
            for end in range(step - 1, columns, step):
                offsets = dict(zip((*sizes, last), (*row, end), strict=True))
                op("memref.prefetch", [], [memory, *(_plus(i, offsets.get(d, 0)) for d, i in enumerate(at))],
                   isWrite=ir.BoolAttr.get(True), isDataCache=ir.BoolAttr.get(True),
                   localityHint=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 3))


def _is_far(memory: Value) -> bool:
    """Whether a buffer is no chunk's own, and larger than the first cache."""
    if maker(memory, "memref.alloca") is not None:
        return False
    t = ir.MemRefType(memory.type)
    return not t.has_static_shape or math.prod(t.shape) * t.element_type.width > CACHED * 8


def _plus(at: Value, offset: int) -> Value:
    return op("arith.addi", [at.type], [at, index(offset)]) if offset else at

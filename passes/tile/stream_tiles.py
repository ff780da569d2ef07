"""stream-tiles: on CPUs large buffers that a program fills are written past the caches (non-temporal stores).

    vector.transfer_write %t, %y[%i, %c0], %mask
    ->
    vector.transfer_write %t, %y[%i, %c0], %mask {xcc.stream = 16777216 : i64}

`retile` makes two nests of it, and takes the one with non-temporal stores where the buffer has more bytes than that and
the tile's lines begin where the cache's do. Programs with products keep their results in the caches: they are not bound
by memory. Left out, all stores go through the caches, which read a line of memory before it is written.
"""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.stores import STREAM, may_stream
from xcc.passes.walk import ops_where

PART = 2    # of the last cache: what is larger is not there when it is read again


@register_pass
class StreamTiles(Pass):
    """Has tiles of large buffers written past the caches."""

    bytes: int = 0      # of a buffer that is large; 0: half of the last cache

    def run(self, module: Module, ctx: PassContext) -> None:
        least = self.bytes or (ctx.chip.last_cache_bytes if ctx.chip else 1 << 25) // PART
        for func in module.body.operations:
            if func.operation.name != "func.func" or BLOCKS not in func.attributes \
                    or ops_where(func, lambda op: op.name == "vector.contract"):
                continue
            for write in ops_where(func, may_stream):
                write.attributes[STREAM] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), least)

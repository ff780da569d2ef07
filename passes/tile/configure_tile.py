"""configure-tile: how many threads an instance of a tile program has on a GPU, and how far its loads run ahead.

    func.func @k(...) attributes {tile.grid = [...]}
    ->  attributes {tile.grid = [...], xcc.config = {gpu = {stages = 3 : i64, threads = 128 : i64}}}

What the program says itself in ``xcc.config`` stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from xcc._mlir import ir
from xcc.dialects import tile as tile_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.walk import ops_where

ROW = 8         # elements of a thread, of the largest tile
MOST = 512      # threads, of a program without products
PRODUCT = 64    # sums of a thread's, of a product's tile
STAGES = 3      # of a loop whose products are loaded ahead of


@register_pass
@dataclass(frozen=True)
class ConfigureTile(Pass):
    """Chooses threads and stages for tile programs that do not say them."""

    name: ClassVar[str] = "configure-tile"

    def run(self, module: Any, ctx: PassContext) -> None:
        warp = getattr(ctx.chip, "warp", 0)
        if not warp:
            return
        with module.context, ir.Location.unknown():
            for func in tile_d.programs_in(module):
                _configure(func.operation, ctx.chip)

    def acts_on(self, chip: Any) -> bool:
        return bool(getattr(chip, "warp", 0))


def _configure(func: Any, chip: Any) -> None:
    products = ops_where(func, lambda op: op.name == "tile.contract")
    sizes = [prod(ir.VectorType(r.type).shape) for op in ops_where(func, lambda op: bool(len(op.results)))
             for r in op.results if isinstance(r.type, ir.VectorType)]
    chosen: dict[str, int] = {}
    if products:
        sums = max(prod(ir.VectorType(op.results[0].type).shape) for op in products)
        chosen["threads"] = min(256, max(128, _power(sums // PRODUCT)))
        chosen["stages"] = STAGES if chip.has_async_copies else 2
    else:
        chosen["threads"] = min(MOST, max(chip.warp, _power(max(sizes, default=1) // ROW)))
    given = func.attributes["xcc.config"] if "xcc.config" in func.attributes else ir.DictAttr.get({})
    gpu = ir.DictAttr(given["gpu"]) if "gpu" in given else ir.DictAttr.get({})
    i64 = ir.IntegerType.get_signless(64)
    whole = {k: ir.IntegerAttr.get(i64, v) for k, v in chosen.items()} | {a.name: a.attr for a in gpu}
    rest = {a.name: a.attr for a in given if a.name != "gpu"}
    func.attributes["xcc.config"] = ir.DictAttr.get(rest | {"gpu": ir.DictAttr.get(whole)})


def _power(n: int) -> int:
    """The power of two at or above n."""
    return 1 << max(0, n - 1).bit_length()

"""Where an element that nonzero or compress chooses goes is counted ahead, so that a GPU stores all side by side.

    %y = xt.nonzero(%x) : 4096
becomes
    %c = xt.convert(xt.compare(%x, 0) {direction = "ne"}) : 4096xi32
    %p = xt.cumulative(%c) {kind = "sum"}                            which split-scans cuts into parts
    %y = xt.nonzero(%x, %p)

(Stream compaction by prefix sums: Blelloch, "Prefix sums and their applications", 1990.)
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import dim_bounds, name_of, rewrite
from xcc.passes.xt.sizes.counted import MOST, require_countable
from xcc.symbolic import Dim, product

SHORTEST = 64           # elements that one thread walks as fast


@register_pass
class SelectPlaces(Pass):
    """Gives nonzero and compress their places."""

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)

        def placed(op: Operation) -> Value | None:
            chosen = op.operands[BARE[name_of(op)] - 1]
            count = product(xt.shape_of(chosen))
            if len(op.operands) != BARE[name_of(op)] or isinstance(count, int) and not SHORTEST <= count < MOST:
                return None
            require_countable(module, [count], bounds)
            return _with_places(op, chosen, count)

        rewrite(module, dict.fromkeys(BARE, placed))


BARE = {"nonzero": 1, "compress": 2}
"""Their operands without places; the last of them chooses."""


def _with_places(op: Operation, chosen: Value, count: Dim) -> Value:
    flat = xt.reshape(chosen, shape=(count,)) if len(xt.shape_of(chosen)) != 1 else chosen
    dtype = xt.TensorType.of(flat).dtype
    if dtype != "i1":
        flat = xt.compare(flat, xt.constant(0, dtype=dtype), direction="ne")
    places = xt.cumulative(xt.convert(flat, dtype="i32"), kind="sum", axis=0)
    a = vars(xt.attrs_of(op))
    return getattr(xt, name_of(op))(*op.operands, places, **a)

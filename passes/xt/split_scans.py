"""Long scans are done in parts side by side, so that a GPU has more than one thread a row.

    %y = xt.cumulative(%x) {axis = 0, kind = "sum"} : 4096
becomes
    %p = xt.reshape(%x) : 64x64                              %t = xt.reduce(%p) {axes = [1], kind = "sum"} : 64
    %i = xt.cumulative(%p) {axis = 1} : 64x64                %o = xt.cumulative(%t) {axis = 0, exclusive} : 64
    %y = xt.reshape(xt.add(%i, xt.reshape(%o) : 64x1)) : 4096

The scan of the totals is cut again while it is long (Blelloch, "Prefix sums and their applications", 1990). An axis
that is no multiple of a part is padded with the neutral element at the end. Narrow floats are scanned in f32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.rewrite import at, name_of, replace, walk_ops

__all__ = ["SplitScans"]

NARROW = ("f16", "bf16", "f8E4M3FN", "f8E5M2")
NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
THREADS = 1024      # rows for each core with which a thread a row is enough


@register_pass
@dataclass(frozen=True)
class SplitScans(Pass):
    """Cuts the axis of cumulative ops with few rows. part: elements that one thread walks."""

    name: ClassVar[str] = "split-scans"
    part: int = 64

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context:
            for op in list(walk_ops(module)):
                if name_of(op) == "cumulative" and self._pays(op, ctx):
                    a, x = xt.attrs_of(op), op.operands[0]
                    dtype = xt.TensorType.of(x).dtype
                    with at(op):
                        y = self._scan(xt.convert(x, dtype="f32") if dtype in NARROW else x, a.kind, a.axis,
                                       a.exclusive, a.reverse)
                        replace(op, [xt.convert(y, dtype=dtype) if dtype in NARROW else y])

    def _pays(self, op: Any, ctx: PassContext) -> bool:
        a, kind = xt.attrs_of(op), xt.TensorType.of(op.operands[0])
        if a.kind not in COMBINE or not all(isinstance(d, int) for d in kind.shape):
            return False
        sizes = [d for d in kind.shape if isinstance(d, int)]
        if not xt.is_float(kind.dtype) and a.kind in ("max", "min") and sizes[a.axis] % self.part:
            return False        # a pad of infinities is none of integers
        rows = math.prod(sizes) // max(1, sizes[a.axis])
        return sizes[a.axis] > 4 * self.part and rows < THREADS * (ctx.chip.cores or 1)

    def _scan(self, x: Any, kind: str, axis: int, exclusive: bool, reverse: bool) -> Any:
        shape = tuple(d for d in xt.shape_of(x) if isinstance(d, int))
        size = shape[axis]
        if size <= 4 * self.part:
            return xt.cumulative(x, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse)
        parts = -(-size // self.part)
        more = parts * self.part - size
        if more:
            high = tuple(more if d == axis else 0 for d in range(len(shape)))
            x = xt.pad(x, low=(0,) * len(shape), high=high, value=NEUTRAL[kind])
        cut = xt.reshape(x, shape=(*shape[:axis], parts, self.part, *shape[axis + 1:]))
        inner = xt.cumulative(cut, kind=kind, axis=axis + 1, exclusive=exclusive, reverse=reverse)
        totals = xt.reduce(cut, kind=kind, axes=(axis + 1,), keepdims=False)
        offsets = self._scan(totals, kind, axis, True, reverse)
        offsets = xt.reshape(offsets, shape=(*shape[:axis], parts, 1, *shape[axis + 1:]))
        y = getattr(xt, COMBINE[kind])(inner, offsets)
        y = xt.reshape(y, shape=(*shape[:axis], parts * self.part, *shape[axis + 1:]))
        return xt.slice(y, starts=(0,) * len(shape), limits=shape, strides=(1,) * len(shape)) if more else y

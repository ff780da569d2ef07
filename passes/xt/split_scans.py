"""Long scans are done in parts side by side, so that a GPU has more than one thread a row.

Along the last dim, a part of 16 is a window over itself, written out and fused with what is added to it:

    %y = xt.cumulative(%x) {axis = 0, kind = "sum"} : 4096
becomes
    %p = xt.reshape(%x) : 256x16                             %t = xt.reduce(%p) {axes = [1], kind = "sum"} : 256
    %i = xt.reduce_window(%p) {window = [1, 16], low = [0, 15]}      %s = the scan of %t, in the same way
    %y = xt.reshape(xt.add(%i, %s one place on, 0 ahead))

Along another dim, where neighbours lie together, a thread walks a part of 64:

    %p = xt.reshape(%x) : 64x64x8                            %t = xt.reduce(%p) {axes = [1], kind = "sum"} : 64x8
    %i = xt.cumulative(%p) {axis = 1} : 64x64x8              %o = xt.cumulative(%t) {axis = 0, exclusive} : 64x8
    %y = xt.reshape(xt.add(%i, xt.reshape(%o) : 64x1x8)) : 4096x8

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
WINDOW = 16         # elements of a part that is a window; schedules write as many out


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
                        wide = xt.convert(x, dtype="f32") if dtype in NARROW else x
                        y = _windows(wide, a) if _windowed(op) else \
                            self._scan(wide, a.kind, a.axis, a.exclusive, a.reverse)
                        replace(op, [xt.convert(y, dtype=dtype) if dtype in NARROW else y])

    def _pays(self, op: Any, ctx: PassContext) -> bool:
        a, kind = xt.attrs_of(op), xt.TensorType.of(op.operands[0])
        if a.kind not in COMBINE or not all(isinstance(d, int) for d in kind.shape):
            return False
        sizes = [d for d in kind.shape if isinstance(d, int)]
        if _windowed(op):
            return sizes[a.axis] > WINDOW
        if not xt.is_float(kind.dtype) and a.kind in ("max", "min") and sizes[a.axis] % self.part:
            return False        # a pad of infinities is none of integers
        rows = math.prod(sizes) // max(1, sizes[a.axis])
        return sizes[a.axis] > 4 * self.part and rows < THREADS * (ctx.chip.cores or 1)

    def _scan(self, x: Any, kind: str, axis: int, exclusive: bool, reverse: bool) -> Any:
        shape = _sizes(x)
        if shape[axis] <= 4 * self.part:
            return xt.cumulative(x, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse)
        cut = _cut(x, kind, axis, self.part)
        inner = xt.cumulative(cut, kind=kind, axis=axis + 1, exclusive=exclusive, reverse=reverse)
        totals = xt.reduce(cut, kind=kind, axes=(axis + 1,), keepdims=False)
        offsets = self._scan(totals, kind, axis, True, reverse)
        offsets = xt.reshape(offsets, shape=(*shape[:axis], _sizes(totals)[axis], 1, *shape[axis + 1:]))
        return _whole(getattr(xt, COMBINE[kind])(inner, offsets), shape, axis)


def _windowed(op: Any) -> bool:
    """Whether neighbours in memory lie along the scan, and its neutral element is a number of its type."""
    a, kind = xt.attrs_of(op), xt.TensorType.of(op.operands[0])
    return all(d == 1 for d in kind.shape[a.axis + 1:]) and (xt.is_float(kind.dtype) or a.kind in ("sum", "prod"))


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(d for d in xt.shape_of(value) if isinstance(d, int))


def _cut(x: Any, kind: str, axis: int, part: int) -> Any:
    """`x` with `axis` as two dims, parts and places in a part, neutral elements behind the last."""
    shape = _sizes(x)
    parts = -(-shape[axis] // part)
    more = parts * part - shape[axis]
    if more:
        high = tuple(more if d == axis else 0 for d in range(len(shape)))
        x = xt.pad(x, low=(0,) * len(shape), high=high, value=NEUTRAL[kind])
    return xt.reshape(x, shape=(*shape[:axis], parts, part, *shape[axis + 1:]))


def _whole(y: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The two dims as one again, of its first size."""
    cut = _sizes(y)
    y = xt.reshape(y, shape=(*cut[:axis], cut[axis] * cut[axis + 1], *cut[axis + 2:]))
    return _from(y, axis, 0, shape[axis])


def _from(y: Any, axis: int, start: int, limit: int) -> Any:
    shape = _sizes(y)
    if (start, limit) == (0, shape[axis]):
        return y
    starts = tuple(start if d == axis else 0 for d in range(len(shape)))
    limits = tuple(limit if d == axis else n for d, n in enumerate(shape))
    return xt.slice(y, starts=starts, limits=limits, strides=(1,) * len(shape))


def _windows(x: Any, a: Any) -> Any:
    """The scan of `x` along its last dim that is not 1, by windows."""
    shape = _sizes(x)
    y = _inclusive(xt.reshape(x, shape=(math.prod(shape[:a.axis]), shape[a.axis])), a.kind, a.reverse)
    return xt.reshape(_shifted(y, a.kind, a.reverse) if a.exclusive else y, shape=shape)


def _inclusive(x: Any, kind: str, reverse: bool) -> Any:
    """x [rows, n]."""
    rows, size = _sizes(x)
    if size <= WINDOW:
        return _window(x, kind, reverse)
    cut = _cut(x, kind, 1, WINDOW)
    totals = xt.reduce(cut, kind=kind, axes=(2,), keepdims=False)
    offsets = _shifted(_inclusive(totals, kind, reverse), kind, reverse)
    offsets = xt.reshape(offsets, shape=(rows, _sizes(cut)[1], 1))
    return _whole(getattr(xt, COMBINE[kind])(_window(cut, kind, reverse), offsets), (rows, size), 1)


def _window(x: Any, kind: str, reverse: bool) -> Any:
    """The scan along the last dim as a reduction of the window that ends (reverse: begins) at each element."""
    *outer, size = _sizes(x)
    ends = [(*(0,) * len(outer), size - 1), (0,) * (len(outer) + 1)]
    low, high = reversed(ends) if reverse else ends
    return xt.reduce_window(x, kind=kind, window=(*(1,) * len(outer), size), low=low, high=high)


def _shifted(y: Any, kind: str, reverse: bool) -> Any:
    """y [rows, n] one place on (reverse: back), a neutral element in the place that becomes free."""
    _, size = _sizes(y)
    kept = _from(y, 1, 1, size) if reverse else _from(y, 1, 0, size - 1)
    low, high = ((0, 0), (0, 1)) if reverse else ((0, 1), (0, 0))
    return xt.pad(kept, low=low, high=high, value=NEUTRAL[kind])

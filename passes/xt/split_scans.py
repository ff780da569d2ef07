"""Long scans are done in parts side by side, so that a GPU has more than one thread a row.

Along the last dim a workgroup scans rows, or parts of long ones, in registers; parts begin at the scan of their sums:

    %y = xt.cumulative(%x) {axis = 0, kind = "sum"} : 65536
becomes
    %t = xt.scan_parts(%x) {part = 4096} : 1x16           %o = xt.scan_rows(%t) {exclusive}
    %y = xt.scan_rows(%x, %o) {part = 4096}

Along another dim, where neighbours lie together, a thread walks a part of 64:

    %p = xt.reshape(%x) : 64x64x8                            %t = xt.reduce(%p) {axes = [1], kind = "sum"} : 64x8
    %i = xt.cumulative(%p) {axis = 1} : 64x64x8              %o = xt.cumulative(%t) {axis = 0, exclusive} : 64x8
    %y = xt.reshape(xt.add(%i, xt.reshape(%o) : 64x1x8)) : 4096x8

The scan of the totals is cut again while it is long (Blelloch, "Prefix sums and their applications", 1990). An axis
that is no multiple of a part is padded with the neutral element at the end. Narrow floats are scanned in f32.
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.reading import Attrs
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import product

NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
SCANNED = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8")
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
THREADS = 1024      # rows for each core with which a thread a row is enough
SHORT = 16          # elements that a thread scans as fast as a workgroup
ROW = 4096          # elements of a part of a row


@register_pass
class SplitScans(Pass):
    """Cuts the axis of cumulative ops with few rows. part: elements that one thread walks."""

    part: int = 64

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"cumulative": lambda op: self._split(op, ctx)})

    def _split(self, op: Operation, ctx: PassContext) -> Value | None:
        a, x = xt.attrs_of(op), op.operands[0]
        dtype = xt.TensorType.of(x).dtype
        if a.kind not in COMBINE:
            return None
        if _in_rows(x, a.axis):
            return _rows(x, a, ctx.chip.cores)
        if not self._pays(op, ctx):
            return None
        wide = xt.convert(x, dtype="f32") if dtype in NARROW else x
        y = self._scan(wide, a.kind, a.axis, a.exclusive, a.reverse)
        return xt.convert(y, dtype=dtype) if dtype in NARROW else y

    def _pays(self, op: Operation, ctx: PassContext) -> bool:
        a, kind = xt.attrs_of(op), xt.TensorType.of(op.operands[0])
        if not all(isinstance(d, int) for d in kind.shape):
            return False
        sizes = [d for d in kind.shape if isinstance(d, int)]
        if not xt.is_float(kind.dtype) and a.kind in ("max", "min") and sizes[a.axis] % self.part:
            return False        # a pad of infinities is none of integers
        rows = math.prod(sizes) // max(1, sizes[a.axis])
        return sizes[a.axis] > 4 * self.part and rows < THREADS * ctx.chip.cores

    def _scan(self, x: Value, kind: str, axis: int, exclusive: bool, reverse: bool) -> Value:
        shape = _sizes(x)
        if shape[axis] <= 4 * self.part:
            return xt.cumulative(x, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse)
        cut = _cut(x, kind, axis, self.part)
        inner = xt.cumulative(cut, kind=kind, axis=axis + 1, exclusive=exclusive, reverse=reverse)
        totals = xt.reduce(cut, kind=kind, axes=(axis + 1,), keepdims=False)
        offsets = self._scan(totals, kind, axis, True, reverse)
        offsets = xt.reshape(offsets, shape=(*shape[:axis], _sizes(totals)[axis], 1, *shape[axis + 1:]))
        return _whole(getattr(xt, COMBINE[kind])(inner, offsets), shape, axis)


def _in_rows(x: Value, axis: int) -> bool:
    """Whether neighbours in memory lie along the scan of `x`, more than a few."""
    kind = xt.TensorType.of(x)
    size = kind.shape[axis]
    return all(d == 1 for d in kind.shape[axis + 1:]) and kind.dtype != "i1" and kind.dtype in SCANNED \
        and all(d != 0 for d in kind.shape) and (not isinstance(size, int) or size > SHORT)


def _rows(x: Value, a: Attrs, cores: int) -> Value:
    """The scan of `x` along its last dim that is not 1."""
    shape = xt.shape_of(x)
    rows, size = product(shape[:a.axis]), shape[a.axis]
    flat = xt.reshape(x, shape=(rows, size))
    how = {"kind": a.kind, "exclusive": a.exclusive, "reverse": a.reverse}
    if isinstance(size, int) and (size <= ROW or isinstance(rows, int) and rows >= 2 * cores):
        return xt.reshape(xt.scan_rows(flat, **how), shape=shape)
    sums = xt.scan_parts(flat, kind=a.kind, part=ROW)
    starts = xt.scan_rows(sums, kind=a.kind, exclusive=True, reverse=a.reverse)
    return xt.reshape(xt.scan_rows(flat, starts, part=ROW, **how), shape=shape)


def _sizes(value: Value) -> tuple[int, ...]:
    return tuple(d for d in xt.shape_of(value) if isinstance(d, int))


def _cut(x: Value, kind: str, axis: int, part: int) -> Value:
    """`x` with `axis` as two dims, parts and places in a part, neutral elements behind the last."""
    shape = _sizes(x)
    parts = -(-shape[axis] // part)
    more = parts * part - shape[axis]
    if more:
        high = tuple(more if d == axis else 0 for d in range(len(shape)))
        x = xt.pad(x, low=(0,) * len(shape), high=high, value=NEUTRAL[kind])
    return xt.reshape(x, shape=(*shape[:axis], parts, part, *shape[axis + 1:]))


def _whole(y: Value, shape: tuple[int, ...], axis: int) -> Value:
    """The two dims as one again, of its first size."""
    cut = _sizes(y)
    y = xt.reshape(y, shape=(*cut[:axis], cut[axis] * cut[axis + 1], *cut[axis + 2:]))
    return _from(y, axis, 0, shape[axis])


def _from(y: Value, axis: int, start: int, limit: int) -> Value:
    shape = _sizes(y)
    if (start, limit) == (0, shape[axis]):
        return y
    starts = tuple(start if d == axis else 0 for d in range(len(shape)))
    limits = tuple(limit if d == axis else n for d, n in enumerate(shape))
    return xt.slice(y, starts=starts, limits=limits, strides=(1,) * len(shape))


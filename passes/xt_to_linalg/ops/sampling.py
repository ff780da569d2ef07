"""grid_sample: reads at positions that are data, weighted; all taps of an element in one body."""

from __future__ import annotations

import itertools
from typing import Any

from xcc._mlir import Value, arith_d, ir, math_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import constant
from xcc.passes.xt_to_linalg.build.view import View, dim_expr

_F = arith_d.CmpFPredicate
TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}


def number(index: Value) -> Value:
    """An index value as f32."""
    i64 = ir.IntegerType.get_signless(64)
    return arith_d.sitofp(ir.F32Type.get(), arith_d.index_cast(i64, index))


def f32_constant(value: float) -> Value:
    return constant(ir.F32Type.get(), value)


def clip(p: Value, low: Value, high: Value) -> Value:
    return arith_d.minimumf(arith_d.maximumf(p, low), high)


def to_place(p: Value, last: Value) -> Value:
    """An f32 position moved into [0, last] (NaN: 0) as an index."""
    p = arith_d.select(arith_d.cmpf(_F.UNO, p, p), f32_constant(0), p)
    i64 = ir.IntegerType.get_signless(64)
    return arith_d.index_cast(ir.IndexType.get(), arith_d.fptosi(i64, clip(p, f32_constant(0), last)))


def keys(t: Value, c: float) -> Value:
    """The cubic convolution kernel of Keys (1981) at distance `t`."""
    t = math_d.absf(t)

    def polynomial(*factors: float) -> Value:
        out = f32_constant(factors[0])
        for f in factors[1:]:
            out = arith_d.addf(arith_d.mulf(out, t), f32_constant(f))
        return out

    near, far = polynomial(c + 2, -(c + 3), 0, 1), polynomial(c, -5 * c, 8 * c, -4 * c)
    far = arith_d.select(arith_d.cmpf(_F.OLT, t, f32_constant(2)), far, f32_constant(0))
    return arith_d.select(arith_d.cmpf(_F.OLE, t, f32_constant(1)), near, far)


def _reflect(p: Value, size: Value, align: bool) -> Value:
    """`p` mirrored at the borders into the range of the elements, again and again."""
    low, span = (f32_constant(0), arith_d.subf(size, f32_constant(1))) if align else (f32_constant(-0.5), size)
    t = math_d.absf(arith_d.subf(p, low))
    flips, rest = math_d.floor(arith_d.divf(t, span)), arith_d.remf(t, span)
    odd = arith_d.cmpf(_F.ONE, arith_d.remf(flips, f32_constant(2)), f32_constant(0))
    out = arith_d.addf(arith_d.select(odd, arith_d.subf(span, rest), rest), low)
    return arith_d.select(arith_d.cmpf(_F.OLE, span, f32_constant(0)), f32_constant(0), out)


@converts("grid_sample")
def convert_grid_sample(b: Builder, op: Op) -> View:
    x, grid = op.operands
    k = len(x.dims) - 2
    mode, padding, align = op.attr("mode"), op.attr("padding"), op.attr("align_corners")
    where = [dim_expr(0), *(dim_expr(2 + d) for d in range(k))]
    reads = [grid.through(op.dims, [*where, ir.AffineExpr.get_constant(k - 1 - d)]) for d in range(k)]
    for d in range(k):
        b.dim(x.dims[2 + d])

    def body(scalars: list[Value], index: list[Value]) -> Value:
        f32 = ir.F32Type.get()
        sizes = [number(b.dim(n)) for n in x.dims[2:]]
        lasts = [arith_d.subf(n, f32_constant(1)) for n in sizes]
        points = []
        for g, n, last in zip(scalars, sizes, lasts, strict=True):
            shifted = arith_d.addf(scalar.convert(g, grid.dtype, f32), f32_constant(1))
            p = arith_d.mulf(arith_d.divf(shifted, f32_constant(2)), last) if align \
                else arith_d.divf(arith_d.subf(arith_d.mulf(shifted, n), f32_constant(1)), f32_constant(2))
            if padding != "zeros" and mode != "cubic":
                p = clip(_reflect(p, n, align) if padding == "reflection" else p, f32_constant(0), last)
            points.append(p)
        bases = [(math_d.roundeven if mode == "nearest" else math_d.floor)(p) for p in points]
        axes = [[_tap(p, base, step, n, last, mode, padding, align) for step in TAPS[mode]]
                for p, base, n, last in zip(points, bases, sizes, lasts, strict=True)]
        total: Any = None
        for taps in itertools.product(*axes):
            value = scalar.convert(b.extract(x, [*index[:2], *(place for place, _, _ in taps)]), x.dtype, f32)
            for _, weight, _ in taps:
                value = value if weight is None else arith_d.mulf(value, weight)
            for _, _, inside in taps:
                value = value if inside is None else arith_d.select(inside, value, f32_constant(0))
            total = value if total is None else arith_d.addf(total, value)
        return scalar.convert(total, f32, op.dtype)

    return b.indexed(op.dims, op.dtype, reads, body)


def _tap(p: Value, base: Value, step: int, size: Value, last: Value, mode: str, padding: str,
         align: bool) -> tuple[Value, Value | None, Value | None]:
    """(index, weight or None for 1, whether it is inside or None for always) of the element `step` after `base`."""
    at = arith_d.addf(base, f32_constant(step)) if step else base
    weight = inside = None
    if mode == "linear":
        weight = arith_d.subf(f32_constant(1), math_d.absf(arith_d.subf(p, at)))
    elif mode == "cubic":
        weight = keys(arith_d.subf(p, at), -0.75)
    if padding == "reflection":
        at = math_d.roundeven(_reflect(at, size, align))
    elif padding == "zeros":
        inside = arith_d.andi(arith_d.cmpf(_F.OGE, at, f32_constant(0)), arith_d.cmpf(_F.OLT, at, size))
    return to_place(at, last), weight, inside

"""Convolutions in Winograd's form: products with small constant matrices around a batch of products of large ones.

    v[a, b, n, h, w, c] = sum_j B'[b, j] * (sum_i B'[a, i] * x[n, m * h + i, m * w + j, c])
    p[a, b, n, h, w, k] = sum_c v[a, b, n, h, w, c] * f[a, b, k / P, c, k mod P]
    y[n, h, w, k] = sum_b A'[w mod m, b] * (sum_a A'[h mod m, a] * p[a, b, n, h / m, w / m, k])

The sums over constants are unrolled, and most of their elements are 0, 1 or -1: the arithmetic is marked as that of
numbers (no NaN, no infinity), so that these cost nothing or one addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir
from xcc.dialects.xt.winograd import winograd_matrices
from xcc.passes.xt_to_linalg.build.builder import Builder, Read
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.passes.xt_to_linalg.ops.matmul import contract, panel_coordinates
from xcc.symbolic import Dim

FINITE = "#arith.fastmath<nnan,ninf,nsz>"


@converts("winograd_convolution")
def convert_winograd_convolution(b: Builder, op: Op) -> View:
    x, w, tile = op.operands[0].plain(), op.operands[1].plain(), op.attr("tile")
    n, height, width, outputs = op.dims
    size, channels = w.dims[0], x.dims[3]
    down, across = (symbolic.ceildiv(d, tile) for d in (height, width))
    patches = _patches(b, x, tile, [size, size, n, down, across, channels], op.dtype)
    d = [dim_expr(i) for i in range(7)]
    panel, lane = panel_coordinates(d[5], w.dims[4])
    loops = [size, size, n, down, across, outputs]
    products = contract(b, [*loops, channels], 6, [(patches, [*d[:5], d[6]]), (w, [d[0], d[1], panel, d[6], lane])],
                        op.dtype)
    return _results(b, View.of(products, loops, op.dtype), tile, [n, height, width, outputs], op.dtype)


def _patches(b: Builder, x: View, tile: int, dims: list[Dim], dtype: Type) -> View:
    """B' x B of each patch: loops a, b, n, h, w, c and the sum's."""
    size, _, n, down, _, channels = dims
    matrix = _table(winograd_matrices(tile)[2], dtype)
    d = [dim_expr(i) for i in range(7)]
    rows = [size, n, down, x.dims[2], channels]
    first = _sum(b, [*rows, size], dtype, (matrix, [d[0], d[5]]), (x, [d[1], d[2] * tile + d[5], d[3], d[4]]))
    out = _sum(b, [*dims, size], dtype, (matrix, [d[1], d[6]]),
               (View.of(first, rows, dtype), [d[0], d[2], d[3], d[4] * tile + d[6], d[5]]))
    return View.of(out, dims, dtype)


def _results(b: Builder, p: View, tile: int, dims: list[Dim], dtype: Type) -> View:
    """A' p A of each tile: loops n, h, w, k and the sum's."""
    size, _, _, _, across, _ = p.dims
    n, height, _, outputs = dims
    matrix = _table(winograd_matrices(tile)[0], dtype)
    d = [dim_expr(i) for i in range(6)]
    over, rest = ir.AffineExpr.get_floor_div, ir.AffineExpr.get_mod
    columns = [size, n, height, across, outputs]
    first = _sum(b, [*columns, size], dtype, (matrix, [rest(d[2], tile), d[5]]),
                 (p, [d[5], d[0], d[1], over(d[2], tile), d[3], d[4]]))
    out = _sum(b, [*dims, size], dtype, (matrix, [rest(d[2], tile), d[4]]),
               (View.of(first, columns, dtype), [d[4], d[0], d[1], over(d[2], tile), d[3]]))
    return View.of(out, dims, dtype)


def _table(matrix: np.ndarray[Any, Any], dtype: Type) -> View:
    """A constant of the kernel."""
    kind = ir.RankedTensorType.get(list(matrix.shape), dtype)
    entries = [ir.FloatAttr.get(dtype, float(v)) for v in matrix.reshape(-1)]
    return View.of(arith_d.constant(kind, ir.DenseElementsAttr.get(entries, kind)), list(matrix.shape), dtype)


def _sum(b: Builder, loops: Sequence[Dim], dtype: Type, p: Read, q: Read) -> Value:
    """The sum of p * q over the last loop."""
    outer = list(loops[:-1])
    finite = ir.Attribute.parse(FINITE)

    def body(s: list[Value]) -> Value:
        return arith_d.addf(s[2], arith_d.mulf(s[0], s[1], fastmath=finite), fastmath=finite)

    out = (b.fill(outer, dtype, 0), [dim_expr(i) for i in range(len(outer))])
    return b.generic(loops, [out], [p, q], body, [len(outer)])[0]

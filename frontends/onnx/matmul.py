"""Matrix products."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.einsum import einsum
from xcc.frontends.shared.helpers import element, full, rank_of, scalar, slice_axis, squeeze, turned, unsqueeze
from xcc.frontends.shared.products import matmul

LARGEST = 16
"""Rows of matrices whose elimination is written out."""


@onnx_op("MatMul")
def matmul_(cx: Context) -> Value:
    return matmul(cx[0], cx[1])


@onnx_op("Gemm")
def gemm(cx: Context) -> Value:
    """Y = alpha * A' * B' + beta * C."""
    a, b = cx[0], cx[1]
    out = xt.dot_general(a, b, lhs_contract=(0 if cx.attr("transA", 0) else 1,),
                         rhs_contract=(1 if cx.attr("transB", 0) else 0,))
    alpha, beta = cx.attr("alpha", 1.0), cx.attr("beta", 1.0)
    if alpha != 1.0:
        out = xt.mul(out, scalar(alpha, out))
    if not cx.has(2) or beta == 0.0:
        return out
    c = cx[2]
    return xt.add(out, c if beta == 1.0 else xt.mul(c, scalar(beta, c)))


@onnx_op("FusedMatMul", "TransposeMatMul", domain="com.microsoft")
def fused_matmul(cx: Context) -> Value:
    """alpha * A' * B'."""
    out, alpha = matmul(_turned(cx, 0, "A"), _turned(cx, 1, "B")), cx.attr("alpha", 1.0)
    return out if alpha == 1.0 else xt.mul(out, scalar(alpha, out))


def _turned(cx: Context, i: int, name: str) -> Value:
    """Operand `i`, with its first dim put before the last (transBatch), then the last two swapped (trans)."""
    x, n = cx[i], cx.rank(i)
    if cx.attr(f"transBatch{name}", 0):
        x = xt.transpose(x, perm=(*range(1, n - 1), 0, n - 1))
    return turned(x) if cx.attr(f"trans{name}", 0) else x


@onnx_op("Einsum", since=12)
def einsum_(cx: Context) -> Value:
    return einsum(cx.attr("equation"), cx.values())


@onnx_op("Det", since=11)
def determinant(cx: Context) -> Value:
    """By elimination with partial pivoting, unrolled: the size is static and small."""
    x, shape = cx[0], cx.shape(0)
    n = _static_size(cx)
    if n == 0:
        return full(shape[:-2], 1, element(x))
    rows, sign, total = _rows(x, n), None, None
    for k in range(n):
        flip = _pivoted(rows, k)
        if flip is not None:
            sign = flip if sign is None else xt.mul(sign, flip)
        pivot = _entry(rows[k], k)
        total = pivot if total is None else xt.mul(total, pivot)
        safe = xt.select(xt.compare(pivot, scalar(0, pivot), direction="eq"), scalar(1, pivot), pivot)
        for i in range(k + 1, n):
            _subtract(rows, i, k, xt.div(_entry(rows[i], k), safe))
    assert total is not None
    return total if sign is None else xt.mul(total, sign)


@onnx_op("Inverse", domain="com.microsoft")
def inverse(cx: Context) -> Value:
    """By elimination, as Det, above the diagonal too, beside the identity; that of a singular matrix is not finite."""
    x, shape = cx[0], cx.shape(0)
    n = _static_size(cx)
    one = xt.broadcast(xt.constant(np.eye(n), element(x)), shape=shape)
    rows = _rows(xt.concatenate(x, one, axis=len(shape) - 1), n)
    for k in range(n):
        _pivoted(rows, k)
        pivot = _entry(rows[k], k)
        rows[k] = xt.div(rows[k], unsqueeze(pivot, [rank_of(pivot)]))
        for i in range(n):
            if i != k:
                _subtract(rows, i, k, _entry(rows[i], k))
    return slice_axis(xt.concatenate(*(unsqueeze(r, [len(shape) - 2]) for r in rows), axis=len(shape) - 2),
                      len(shape) - 1, n, 2 * n) if n else x


def _static_size(cx: Context) -> int:
    """Of square matrices, whose elimination is written out."""
    n = cx.shape(0)[-1]
    if not isinstance(n, int):
        cx.fail(f"the last dim, '{n}', must be a number up to {LARGEST}: fix it (--dim)")
    if n > LARGEST:
        cx.fail(f"{cx.op} of {n} x {n} matrices is not supported; sizes up to {LARGEST} are")
    return n


def _rows(x: Value, n: int) -> list[Value]:
    axis = rank_of(x) - 2
    return [squeeze(slice_axis(x, axis, i, i + 1), [axis]) for i in range(n)]


def _pivoted(rows: list[Value], k: int) -> Value | None:
    """Exchanges row k for that with the largest number in column k of those below: -1 where the determinant turns."""
    sign = None
    for i in range(k + 1, len(rows)):
        swap = xt.compare(xt.abs(_entry(rows[i], k)), xt.abs(_entry(rows[k], k)), direction="gt")
        wide = unsqueeze(swap, [rank_of(swap)])
        rows[k], rows[i] = xt.select(wide, rows[i], rows[k]), xt.select(wide, rows[k], rows[i])
        flip = xt.select(swap, scalar(-1, rows[k]), scalar(1, rows[k]))
        sign = flip if sign is None else xt.mul(sign, flip)
    return sign


def _subtract(rows: list[Value], i: int, k: int, factor: Value) -> None:
    """factor * row k of row i."""
    rows[i] = xt.sub(rows[i], xt.mul(unsqueeze(factor, [rank_of(factor)]), rows[k]))


def _entry(row: Value, k: int) -> Value:
    shape = xt.shape_of(row)
    last = len(shape) - 1
    return squeeze(xt.slice(row, starts=(*[0] * last, k), limits=(*shape[:-1], k + 1)), [last])



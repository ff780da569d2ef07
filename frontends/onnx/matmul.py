"""Matrix products."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.einsum import einsum
from xcc.frontends.shared.helpers import element, full, rank_of, scalar, squeeze, turned, unsqueeze
from xcc.frontends.shared.products import matmul


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


@onnx_op("FusedMatMul", domain="com.microsoft")
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
    n = shape[-1]
    if not isinstance(n, int) or n > 16:
        cx.fail(f"Det of {n} x {n} matrices is not supported; sizes up to 16 are" if isinstance(n, int) else
                f"the last dim, '{n}', must be a number up to 16: fix it (--dim)")
    if n == 0:
        return full(shape[:-2], 1, element(x))
    rows = [squeeze(xt.slice(x, starts=(*[0] * (len(shape) - 2), i, 0), limits=(*shape[:-2], i + 1, n)),
                    [len(shape) - 2]) for i in range(n)]
    return _eliminate(rows, n)


def _eliminate(rows: list[Value], n: int) -> Value:
    sign = total = None
    for k in range(n):
        for i in range(k + 1, n):
            swap = xt.compare(xt.abs(_entry(rows[i], k)), xt.abs(_entry(rows[k], k)), direction="gt")
            wide = unsqueeze(swap, [rank_of(swap)])
            rows[k], rows[i] = xt.select(wide, rows[i], rows[k]), xt.select(wide, rows[k], rows[i])
            flip = xt.select(swap, scalar(-1, rows[k]), scalar(1, rows[k]))
            sign = flip if sign is None else xt.mul(sign, flip)
        pivot = _entry(rows[k], k)
        total = pivot if total is None else xt.mul(total, pivot)
        safe = xt.select(xt.compare(pivot, scalar(0, pivot), direction="eq"), scalar(1, pivot), pivot)
        for i in range(k + 1, n):
            factor = xt.div(_entry(rows[i], k), safe)
            rows[i] = xt.sub(rows[i], xt.mul(unsqueeze(factor, [rank_of(factor)]), rows[k]))
    assert total is not None
    return total if sign is None else xt.mul(total, sign)


def _entry(row: Value, k: int) -> Value:
    shape = xt.shape_of(row)
    last = len(shape) - 1
    return squeeze(xt.slice(row, starts=(*[0] * last, k), limits=(*shape[:-1], k + 1)), [last])



"""Mixtures of experts: rows, sorted by expert, times the matrix of each one's own."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, rank_of, scalar
from xcc.frontends.shared.products import matmul
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


@aten("grouped_mm_fallback.default", namespace="transformers")
def grouped_fallback(cx: Context) -> Value:
    return grouped(cx.tensor("input"), cx.tensor("weight"), cx.tensor("offs"))


@aten("grouped_mm_fallback_backward.default", namespace="transformers")
def grouped_fallback_backward(cx: Context) -> tuple[Value, Value]:
    """Gradients of the rows, and of each expert's matrix."""
    grad, offs = cx.tensor("grad_output"), cx.tensor("offs")
    return (grouped(grad, xt.transpose(cx.tensor("weight"), perm=(0, 2, 1)), offs),
            summed(cx.tensor("input"), grad, offs))


@aten("_grouped_mm")
def grouped_mm(cx: Context) -> Value:
    """Matrices [experts, ...] times matrices; one of two dims is cut at `offs`: rows, columns, or what is summed."""
    x, y = cx.tensor("self"), cx.tensor("mat2")
    if cx.args.get("bias") is not None:
        cx.fail("a bias is not supported: add it to the result")
    if rank_of(x) == rank_of(y) == 3:
        return matmul(x, y)
    offs = cx.tensor("offs")
    if rank_of(y) == 3:
        return grouped(x, y, offs)
    if rank_of(x) == 3:
        return xt.transpose(grouped(xt.transpose(y, perm=(1, 0)), xt.transpose(x, perm=(0, 2, 1)), offs), perm=(1, 0))
    return summed(xt.transpose(x, perm=(1, 0)), y, offs)


def summed(x: Value, y: Value, offs: Value) -> Value:
    """[experts, k, n]: for each expert the product, over its rows, of x [rows, k] and y [rows, n]."""
    rows, experts = xt.shape_of(y)[0], xt.shape_of(offs)[0]
    own = xt.compare(expert_of(offs, rows), xt.iota(shape=(1, experts), axis=1, dtype="i64"), direction="eq")
    apart = xt.mul(xt.reshape(convert(own, element(y)), shape=(rows, experts, 1)),
                   xt.reshape(y, shape=(rows, 1, xt.shape_of(y)[1])))
    return xt.transpose(xt.dot_general(x, apart, lhs_contract=(0,), rhs_contract=(0,)), perm=(1, 0, 2))


def expert_of(offs: Value, rows: Dim) -> Value:
    """[rows, 1]: the expert e of each row, which has those from offs[e - 1] to offs[e]; their number for one behind."""
    row = xt.iota(shape=(rows, 1), axis=0, dtype="i64")
    ends = xt.reshape(convert(offs, "i64"), shape=(1, xt.shape_of(offs)[0]))
    return xt.reduce(convert(xt.compare(ends, row, direction="le"), "i64"), kind="sum", axes=(1,), keepdims=True)


def grouped(x: Value, weight: Value, offs: Value) -> Value:
    """Rows [rows, k] times the expert's matrix of weight [experts, k, n]; those of no expert are 0."""
    rows, experts = xt.shape_of(x)[0], xt.shape_of(weight)[0]
    expert, count = expert_of(offs, rows), dim_scalar(experts, "i64")
    own = xt.gather(weight, xt.reshape(xt.minimum(expert, xt.sub(count, scalar(1, count))), shape=(rows,)), axis=0)
    out = xt.dot_general(x, own, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(1,), rhs_contract=(1,))
    return xt.select(xt.compare(expert, count, direction="lt"), out, scalar(0, out))

"""Mixtures of experts: rows, sorted by expert, times the matrix of each one's own."""

from __future__ import annotations

from typing import Any

from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten


@aten("grouped_mm_fallback.default", namespace="transformers")
def grouped_product(cx: Context) -> Any:
    """Rows of input [rows, k] times the expert's matrix of weight [experts, k, n], which `offs` [experts] says.

    Expert e has the rows from offs[e - 1] to offs[e]; those behind the last one's are 0.
    """
    x, weight, ends = cx.tensor("input"), cx.tensor("weight"), convert(cx.tensor("offs"), "i64")
    rows, experts = xt.shape_of(x)[0], xt.shape_of(weight)[0]
    row = xt.iota(shape=(rows, 1), axis=0, dtype="i64")
    passed = convert(xt.compare(xt.reshape(ends, shape=(1, experts)), row, direction="le"), "i64")
    expert = xt.reduce(passed, kind="sum", axes=(1,), keepdims=False)
    count = dim_scalar(experts, "i64")
    own = xt.gather(weight, xt.minimum(expert, xt.sub(count, scalar(1, count))), axis=0)
    out = xt.dot_general(x, own, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(1,), rhs_contract=(1,))
    there = xt.reshape(xt.compare(expert, count, direction="lt"), shape=(rows, 1))
    return xt.select(there, out, scalar(0, out))

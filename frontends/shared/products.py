"""Matrix products as numpy has them."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.frontends.shared.helpers import rank_of, squeeze, unsqueeze


def matmul(a: Value, b: Value, dtype: Any = None) -> Value:
    """numpy's matmul: batch dims broadcast, vectors are rows or columns."""
    vector_a, vector_b = rank_of(a) == 1, rank_of(b) == 1
    a = unsqueeze(a, [0]) if vector_a else a
    b = unsqueeze(b, [1]) if vector_b else b
    out = _matmul(a, b, dtype)
    drop = [rank_of(out) - 2] * vector_a + [rank_of(out) - 1] * vector_b
    return squeeze(out, drop) if drop else out


def _matmul(a: Value, b: Value, dtype: Any) -> Value:
    sa, sb = xt.shape_of(a), xt.shape_of(b)
    extra = len(sb) - 2 - (len(sa) - 2)
    if all(d == 1 for d in sb[:-2]):
        b = xt.reshape(b, shape=sb[-2:]) if len(sb) > 2 else b
        if extra > 0:
            a = xt.reshape(a, shape=(*[1] * extra, *sa))
        return xt.dot_general(a, b, lhs_contract=(rank_of(a) - 1,), rhs_contract=(0,), dtype=dtype)
    batch = broadcast_shapes(sa[:-2], sb[:-2])
    if sa[:-2] != batch:
        a = xt.broadcast(a, shape=(*batch, *sa[-2:]))
    if sb[:-2] != batch:
        b = xt.broadcast(b, shape=(*batch, *sb[-2:]))
    axes = tuple(range(len(batch)))
    n = len(batch)
    return xt.dot_general(a, b, lhs_batch=axes, rhs_batch=axes, lhs_contract=(n + 1,), rhs_contract=(n,), dtype=dtype)

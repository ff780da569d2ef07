"""What attention's variants are made of, step by step."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element, scalar


def repeat_heads(x: Value, groups: Any) -> Value:
    """[batch, heads, seq, dim] with each head `groups` times in a row."""
    if groups == 1:
        return x
    batch, heads, seq, dim = xt.shape_of(x)
    wide = xt.broadcast(xt.reshape(x, shape=(batch, heads, 1, seq, dim)), shape=(batch, heads, groups, seq, dim))
    return xt.reshape(wide, shape=(batch, heads * groups, seq, dim))


def shared_heads(q: Any, k: Any) -> Any:
    """How many heads of q read one of k."""
    return symbolic.floordiv(xt.shape_of(q)[1], xt.shape_of(k)[1])


def scores(q: Value, k: Value, scale: float, dtype: str | None = None) -> Value:
    """q k^T * scale in `dtype` (default: q's), of [batch, heads, seq, dim] with heads alike."""
    product = xt.dot_general(q, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(3,),
                             dtype=dtype)
    return xt.mul(product, scalar(scale, product))


def masked(x: Value, mask: Value | None) -> Value:
    """Scores with a mask: i1 keeps where true, a float is added."""
    if mask is None:
        return x
    return xt.select(mask, x, scalar(float("-inf"), x)) if element(mask) == "i1" else xt.add(x, mask)


def weighted(weights: Value, v: Value, dtype: str | None = None) -> Value:
    """weights [batch, heads, rows, columns] times v, in `dtype` (default: that of the weights)."""
    return xt.dot_general(weights, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,),
                          dtype=dtype)

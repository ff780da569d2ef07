"""attention_query_gradient and attention_key_gradients.

As many kernels the scores and their gradients are values in memory, which both ops share. As one kernel each
(`fused_...`) they are of a tile of rows and a block of columns: queries and keys, or keys and queries (Dao, 2023,
FlashAttention-2, arXiv:2307.08691, algorithm 2, without its atomic sums).
"""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.attention import masked, product, repeated, whole
from xcc.passes.xt.decompose.build import const, convert, dtype, shape

Pair = tuple[Value, Value]


@decomposes("attention_query_gradient")
def attention_query_gradient(a: Attrs, grad: Value, q: Value, k: Value, v: Value, sums: Value, delta: Value,
                             mask: Value | None) -> Value:
    """ds k * scale."""
    _, ds = _of_scores(a, grad, q, k, v, sums, delta, mask)
    dq = product(convert(ds, dtype(q)), repeated(k, shape(q)[1]), 3, 2, dtype(ds))
    return convert(xt.mul(dq, const(a.scale, dq)), dtype(q))


@decomposes("attention_key_gradients")
def attention_key_gradients(a: Attrs, grad: Value, q: Value, k: Value, v: Value, sums: Value, delta: Value,
                            mask: Value | None) -> Pair:
    """ds^T q * scale and p^T grad."""
    p, ds = (xt.transpose(x, perm=(0, 1, 3, 2)) for x in _of_scores(a, grad, q, k, v, sums, delta, mask))
    return _of_keys(a, p, convert(ds, dtype(q)), grad, q, k)


def _of_scores(a: Attrs, grad: Value, q: Value, k: Value, v: Value, sums: Value, delta: Value, mask: Value | None
               ) -> Pair:
    """The weights in the type of q, and the gradient of the scores in that of the sums."""
    k, v, wide = repeated(k, shape(q)[1]), repeated(v, shape(q)[1]), dtype(sums)
    scores = product(q, k, 3, 3, wide)
    scores = masked(whole(a), xt.mul(scores, const(a.scale, scores)), mask, 2)
    hidden = xt.compare(scores, const(-np.inf, scores), direction="eq")
    e = xt.exp(xt.sub(scores, _along(sums, 3)))
    p = convert(xt.select(hidden, const(0.0, scores), e), dtype(q))
    return p, xt.mul(convert(p, wide), xt.sub(product(grad, v, 3, 3, wide), _along(delta, 3)))


def fused_query_gradient(a: Attrs, grad: Value, q: Value, k: Value, v: Value, sums: Value, delta: Value,
                         mask: Value | None) -> Value:
    """One kernel, whose loop is over the keys."""
    k, v = repeated(k, shape(q)[1]), repeated(v, shape(q)[1])
    p = _weights(a, product(q, k, 3, 3, dtype(sums)), sums, mask, 2)
    ds = xt.mul(p, xt.sub(product(grad, v, 3, 3, dtype(sums)), _along(delta, 3)))
    dq = product(convert(ds, dtype(q)), k, 3, 2, dtype(sums))
    return convert(xt.mul(dq, const(a.scale, dq)), dtype(q))


def fused_key_gradients(a: Attrs, grad: Value, q: Value, k: Value, v: Value, sums: Value, delta: Value,
                        mask: Value | None) -> Pair:
    """One kernel, whose loop is over the queries."""
    own, (k, v) = k, (repeated(x, shape(q)[1]) for x in (k, v))
    p = _weights(a, product(k, q, 3, 3, dtype(sums)), sums, mask, 3)
    ds = xt.mul(p, xt.sub(product(v, grad, 3, 3, dtype(sums)), _along(delta, 2)))
    return _of_keys(a, convert(p, dtype(q)), convert(ds, dtype(q)), grad, q, own)


def _of_keys(a: Attrs, p: Value, ds: Value, grad: Value, q: Value, k: Value) -> Pair:
    """The gradients of keys and values, of p and ds [batch, heads, keys, queries]."""
    wide = "f64" if dtype(q) == "f64" else "f32"
    kind = dtype(k) if shape(q)[1] == shape(k)[1] else wide
    dk = product(ds, q, 3, 2, wide)
    return convert(xt.mul(dk, const(a.scale, dk)), kind), convert(product(p, grad, 3, 2, wide), kind)


def _weights(a: Attrs, product: Value, sums: Value, mask: Value | None, queries: int) -> Value:
    """exp(scores - sums), the queries along the dim `queries`: 0 where a score is -inf, its row's sum may be so, too.

    A kernel multiplies sums by log2(e), which the lowest number does not survive; an added mask's scores may be it.
    """
    scores = masked(whole(a), xt.mul(product, const(a.scale, product)), mask, queries)
    lowest = float(np.finfo(np.float32).min)
    least = lowest if mask is not None and dtype(mask) != "i1" else lowest / 2
    return xt.exp(xt.sub(scores, _along(xt.maximum(sums, const(least, sums)), 5 - queries)))


def _along(rows: Value, d: int) -> Value:
    """What is of each query, with a dim `d` of 1 for the keys."""
    return xt.reshape(rows, shape=(*shape(rows)[:d], 1, *shape(rows)[d:]))

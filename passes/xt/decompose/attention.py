"""attention, rotary and gelu."""

from __future__ import annotations

import math

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert, dim_scalar, dtype, shape, take, widened
from xcc.symbolic import Dim, floordiv


@decomposes("attention")
def attention(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> Value:
    """softmax(q k^T * scale + mask) v; query heads that share a key head become one dim of 5-D products."""
    batch, heads, queries, size = shape(q)
    shared, keys = shape(k)[1:3]
    group = floordiv(heads, shared)
    q5 = xt.reshape(q, shape=(batch, shared, group, queries, size))
    scaled = product(q5, k, 4, 3)
    scores = xt.reshape(xt.mul(scaled, const(a.scale, scaled)), shape=(batch, heads, queries, keys))
    weights = convert(_masked_softmax(a, _capped(a, scores), mask), dtype(v))
    w5 = xt.reshape(weights, shape=(batch, shared, group, queries, keys))
    out = xt.dot_general(w5, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(4,), rhs_contract=(2,))
    return xt.reshape(out, shape=(batch, heads, queries, shape(v)[3]))


@decomposes("attention_with_sums")
def attention_with_sums(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> tuple[Value, Value]:
    """Attention, and apart from it the log of the sum of exponentials, relative to the largest score."""
    given = [] if mask is None else [mask]
    out = xt.attention(q, k, v, *given, scale=a.scale, causal=a.causal)
    k = repeated(k, shape(q)[1])
    scores = product(q, k, 3, 3)
    _, total, top = _exponentials(masked(whole(a), xt.mul(scores, const(a.scale, scores)), mask), True)
    return out, _log_sum(total, top)


def whole(a: Attrs) -> Attrs:
    """The attributes of the same attention."""
    return type(a)(**vars(a), causal_offset=(0,), softcap=0.0, nan_rows=False)


def _log_sum(total: Value, top: Value) -> Value:
    """[batch, heads, queries] of what both have as [batch, heads, queries, 1]; log 0 where a query sees no key."""
    out = xt.add(xt.log(total), top)
    return xt.reshape(out, shape=shape(out)[:3])


def fused_with_sums(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> tuple[Value, Value]:
    """As fused_attention, whose sums are a result."""
    out, total, top = _in_one_pass(whole(a), q, k, v, mask)
    return out, _log_sum(total, top)


def fused_attention(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> Value:
    """The form that one kernel evaluates in one pass over the keys: products, exponentials, and a division at the end.

    Shared heads are read by each of their query heads; the sum of the weights divides the result, not the weights.
    """
    return _in_one_pass(a, q, k, v, mask)[0]


def _in_one_pass(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> tuple[Value, Value, Value]:
    """The result, the sums of exponentials, and what these are relative to."""
    batch, heads, queries, _ = shape(q)
    k, v = (repeated(x, heads) for x in (k, v))
    scores = product(q, k, 3, 3)
    scores = _capped(a, xt.mul(scores, const(a.scale, scores)))
    hides = mask is not None or bool(a.causal)
    e, total, top = _exponentials(masked(a, scores, mask), hides)
    out = product(convert(e, dtype(v)), v, 3, 2, dtype(e))
    divisor = xt.maximum(total, const(np.finfo(np.float32).tiny, total)) if hides and not a.nan_rows else total
    return convert(xt.div(out, divisor), dtype(q)), total, top


def simpler_attention(a: Attrs, q: Value, k: Value, v: Value, mask: Value | None) -> Value | None:
    """The same attention with what a kernel need not do taken out of it; None where there is nothing.

    A causal mask that hides nothing goes. The only queries of heads that share a key head become queries of one head.
    """
    batch, heads, queries, size = shape(q)
    shared, keys = shape(k)[1:3]
    attributes: dict[str, float] = {"scale": a.scale, "softcap": a.softcap, "nan_rows": a.nan_rows}
    beyond = a.causal_offset[0] - (keys - 1)
    if a.causal and isinstance(beyond, int) and beyond >= 0:
        return xt.attention(q, k, v, *([] if mask is None else [mask]), **attributes)
    lines = [*([1] * 4), *shape(mask)][-4:] if mask is not None else [1] * 4
    if queries != 1 or heads == shared or a.causal or lines[1] != 1 or lines[2] != 1:
        return None
    q = xt.reshape(q, shape=(batch, shared, floordiv(heads, shared), size))
    out = xt.attention(q, k, v, *([] if mask is None else [mask]), **attributes)
    return xt.reshape(out, shape=(batch, heads, queries, shape(v)[3]))


def repeated(x: Value, heads: Dim) -> Value:
    """Each head of x for as many query heads as share it: a view inside a kernel."""
    batch, shared, keys, size = shape(x)
    if shared == heads:
        return x
    group = floordiv(heads, shared)
    wide = xt.broadcast(xt.reshape(x, shape=(batch, shared, 1, keys, size)), shape=(batch, shared, group, keys, size))
    return xt.reshape(wide, shape=(batch, heads, keys, size))


def _masked_softmax(a: Attrs, scores: Value, mask: Value | None) -> Value:
    """The softmax of what is visible; rows where nothing is give 0, or NaN where that is asked for."""
    scores = masked(a, scores, mask)
    if mask is None and not a.causal or a.nan_rows:
        return xt.softmax(scores, axis=3)
    e, total, _ = _exponentials(scores, True)
    return xt.div(e, xt.maximum(total, const(np.finfo(np.float32).tiny, total)))


def product(x: Value, y: Value, left: int, right: int, wide: str = "") -> Value:
    """The product of each head, summed over these dims; f32 of narrow floats where `wide` says nothing else."""
    return xt.dot_general(x, y, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(left,), rhs_contract=(right,),
                          dtype=wide or ("f64" if dtype(x) == "f64" else "f32"))


def _capped(a: Attrs, scores: Value) -> Value:
    if not a.softcap:
        return scores
    return xt.mul(xt.tanh(xt.mul(scores, const(1 / a.softcap, scores))), const(a.softcap, scores))


def _exponentials(scores: Value, hides: bool) -> tuple[Value, Value, Value]:
    """exp(scores - top), its sums, and the largest score `top` of each row, a number where all may be hidden."""
    top = xt.reduce(scores, kind="max", axes=(3,), keepdims=True)
    if hides:
        top = xt.maximum(top, const(np.finfo(np.float32).min, top))
    e = xt.exp(xt.sub(scores, top))
    return e, xt.reduce(e, kind="sum", axes=(3,), keepdims=True), top


def masked(a: Attrs, scores: Value, mask: Value | None, queries: int = 2) -> Value:
    """The scores, whose dim `queries` is that of queries, with the mask added, or -inf where something hides them."""
    if mask is not None and queries == 3:
        lines = (*[1] * (4 - len(shape(mask))), *shape(mask))
        mask = xt.transpose(xt.reshape(mask, shape=lines), perm=(0, 1, 3, 2))
    if mask is not None and dtype(mask) == "i1":
        scores = xt.select(mask, scores, const(-np.inf, scores))
    elif mask is not None:
        scores = xt.add(scores, convert(mask, dtype(scores)))
    if not a.causal:
        return scores
    row, key = (xt.iota(shape=_line(shape(scores), d), axis=d - 2) for d in (queries, 5 - queries))
    if a.causal_offset != (0,):
        row = xt.add(row, dim_scalar(a.causal_offset[0], "i64"))
    return xt.select(xt.compare(key, row, direction="le"), scores, const(-np.inf, scores))


def _line(dims: tuple[Dim, ...], d: int) -> tuple[Dim, ...]:
    return tuple(size if n == d else 1 for n, size in enumerate(dims))[2:]


@decomposes("rotary")
def rotary(a: Attrs, x: Value, cos: Value, sin: Value) -> Value:
    """Halves (or even and odd elements) turned and put together again."""
    dims = shape(x)
    half = floordiv(dims[-1], 2)

    def f(x: Value, c: Value, s: Value) -> Value:
        if a.interleaved:
            pairs = xt.reshape(x, shape=(*dims[:-1], half, 2))
            first, second = (xt.reshape(take(pairs, -1, i, i + 1), shape=(*dims[:-1], half)) for i in (0, 1))
        else:
            first, second = take(x, -1, 0, half), take(x, -1, half, dims[-1])
        turned = [xt.sub(xt.mul(first, c), xt.mul(second, s)), xt.add(xt.mul(second, c), xt.mul(first, s))]
        if not a.interleaved:
            return xt.concatenate(*turned, axis=-1)
        columns = [xt.reshape(t, shape=(*dims[:-1], half, 1)) for t in turned]
        return xt.reshape(xt.concatenate(*columns, axis=-1), shape=dims)

    return widened(f, x, cos, sin)


@decomposes("gelu")
def gelu(a: Attrs, x: Value) -> Value:
    """x/2 * (1 + erf(x/sqrt 2)), or the tanh form."""

    def f(v: Value) -> Value:
        if a.approximate == "tanh":
            cube = xt.mul(xt.mul(v, v), v)
            inner = xt.mul(xt.add(v, xt.mul(cube, const(0.044715, v))), const(math.sqrt(2 / math.pi), v))
            bend = xt.tanh(inner)
        else:
            bend = xt.erf(xt.mul(v, const(math.sqrt(0.5), v)))
        return xt.mul(xt.mul(v, const(0.5, v)), xt.add(bend, const(1.0, v)))

    return widened(f, x)

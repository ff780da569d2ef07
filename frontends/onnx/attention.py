"""Attention and rotary embedding."""

from __future__ import annotations

from math import sqrt

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.attention import masked, repeat_heads, scores, shared_heads, weighted
from xcc.frontends.shared.helpers import convert, element, rank_of, scalar, slice_axis, unsqueeze
from xcc.symbolic import Dim


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(cx: Context) -> Value:
    """Y = RotaryEmbedding(X, cos_cache, sin_cache, position_ids?)."""
    x, shape = cx[0], cx.shape(0)
    flat = len(shape) == 3
    if flat:
        heads = cx.attr("num_heads", 0)
        if not heads:
            cx.fail("num_heads is needed for an input of rank 3")
        batch, seq, hidden = shape
        x = xt.transpose(xt.reshape(x, shape=(batch, seq, heads, symbolic.floordiv(hidden, heads))), perm=(0, 2, 1, 3))
    cos, sin = (_at_positions(cx, cx[i]) for i in (1, 2))
    out = turn(x, cos, sin, cx.attr("rotary_embedding_dim", 0) or xt.shape_of(x)[3], bool(cx.attr("interleaved", 0)))
    return xt.reshape(xt.transpose(out, perm=(0, 2, 1, 3)), shape=shape) if flat else out


def turn(x: Value, cos: Value, sin: Value, turned: Dim, interleaved: bool) -> Value:
    """The first `turned` of the last dim of x [batch, heads, seq, dim] rotated; the rest stays."""
    size, rest = xt.shape_of(x)[3], None
    if turned != size:
        x, rest = slice_axis(x, 3, 0, turned), slice_axis(x, 3, turned, size)
    out = xt.rotary(x, cos, sin, interleaved=interleaved)
    return out if rest is None else xt.concatenate(out, rest, axis=3)


def _at_positions(cx: Context, cache: Value) -> Value:
    """[batch, 1, seq, dim/2]: rows of the cache at the positions, or the cache as it is."""
    rows = xt.gather(cache, cx[3], axis=0) if cx.has(3) else cache
    return unsqueeze(rows, [1])


def split_heads(x: Value, heads: Dim) -> Value:
    """[batch, seq, heads*dim] -> [batch, heads, seq, dim]."""
    batch, seq, hidden = xt.shape_of(x)
    return xt.transpose(xt.reshape(x, shape=(batch, seq, heads, symbolic.floordiv(hidden, heads))), perm=(0, 2, 1, 3))


def merge_heads(x: Value) -> Value:
    """[batch, heads, seq, dim] -> [batch, seq, heads*dim]."""
    batch, heads, seq, dim = xt.shape_of(x)
    return xt.reshape(xt.transpose(x, perm=(0, 2, 1, 3)), shape=(batch, seq, heads * dim))


@onnx_op("Attention", since=23)
def attention(cx: Context) -> tuple[Value, Value, Value, Value | None]:
    """Y, present_key?, present_value?, qk? = Attention(Q, K, V, attn_mask?, past_key?, past_value?, lengths?)."""
    q, k, v = cx[0], cx[1], cx[2]
    flat = cx.rank(0) == 3
    if flat:
        q = split_heads(q, cx.attr("q_num_heads", 1))
        k, v = (split_heads(x, cx.attr("kv_num_heads", 1)) for x in (k, v))
    if cx.has(4):
        k, v = (xt.concatenate(cx[i], x, axis=2) for i, x in ((4, k), (5, v)))
    presents = (k, v)
    scale = cx.attr("scale") or 1 / sqrt(head_size(cx, q))
    if cx.wants(3):
        y, weights = _explicit(cx, q, k, v, _mask(cx, q, k, bool(cx.attr("is_causal", 0))), scale)
    else:
        windowed = cx.attr("left_window_size", -1) >= 0 or cx.attr("right_window_size", -1) >= 0
        plain = bool(cx.attr("is_causal", 0)) and not cx.has(6) and not windowed
        mask = _mask(cx, q, k, bool(cx.attr("is_causal", 0)) and not plain)
        weights = None
        y = xt.attention(q, k, v, mask, scale=scale, causal=plain, causal_offset=(cx.shape(4)[2] if cx.has(4) else 0,),
                         softcap=cx.attr("softcap", 0.0))
    return merge_heads(y) if flat else y, *presents, weights


def head_size(cx: Context, q: Value) -> int:
    """The last dim of q [batch, heads, seq, dim], which the scale needs."""
    size = xt.shape_of(q)[3]
    if not isinstance(size, int):
        cx.fail(f"the head size must be static, but is {size}")
    return size


def _mask(cx: Context, q: Value, k: Value, causal: bool) -> Value | None:
    """attn_mask, causality and the padding of the cache: i1 (visible) or added to the scores; None without any."""
    kind = element(q)
    rows, columns = xt.shape_of(q)[2], xt.shape_of(k)[2]
    allowed = bias = None
    if cx.has(3):
        given = cx[3]
        missing = columns - xt.shape_of(given)[-1]
        if missing != 0 and xt.shape_of(given)[-1] != 1:
            fill = 0.0 if element(given) == "i1" else float("-inf")
            last = rank_of(given) - 1
            given = xt.pad(given, low=(0,) * (last + 1), high=(*[0] * last, missing), value=fill)
        if element(given) == "i1":
            allowed = given
        else:
            bias = convert(given, kind)
    left, right = cx.attr("left_window_size", -1), 0 if causal else cx.attr("right_window_size", -1)
    if left >= 0 or right >= 0:
        seen = seen_keys(_causal_offset(cx), rows, columns, left, right)
        allowed = seen if allowed is None else xt.and_(allowed, seen)
    if cx.has(6):
        lengths = xt.reshape(convert(cx[6], "i64"), shape=(cx.shape(6)[0], 1, 1, 1))
        filled = xt.compare(xt.iota(shape=(1, 1, 1, columns), axis=3, dtype="i64"), lengths, direction="lt")
        allowed = filled if allowed is None else xt.and_(allowed, filled)
    if bias is None or allowed is None:
        return allowed if bias is None else bias
    return xt.select(allowed, bias, xt.scalar(float("-inf"), kind))


def seen_keys(offset: Value, rows: Dim, columns: Dim, left: int, right: int) -> Value | None:
    """Which keys a query sees, i1: `left` before its own position, which is its row + offset, and `right` after it.

    -1 is without a limit; at least one has one.
    """
    own = xt.add(xt.iota(shape=(rows, columns), axis=0, dtype="i64"), offset)
    key = xt.iota(shape=(rows, columns), axis=1, dtype="i64")
    seen = None
    if right >= 0:
        seen = xt.compare(key, xt.add(own, xt.scalar(right, "i64")), direction="le")
    if left >= 0:
        after = xt.compare(key, xt.sub(own, xt.scalar(left, "i64")), direction="ge")
        seen = after if seen is None else xt.and_(seen, after)
    return seen


def _causal_offset(cx: Context) -> Value:
    """How many columns come before the first row's own: the length of the past."""
    past = cx.shape(4)[2] if cx.has(4) else 0
    if cx.has(6) and not cx.has(4):
        lengths = xt.reshape(convert(cx[6], "i64"), shape=(cx.shape(6)[0], 1, 1, 1))
        rows = cx.shape(0)[1 if cx.rank(0) == 3 else 2]
        return xt.sub(lengths, xt.dim(value=rows) if not isinstance(rows, int) else xt.scalar(rows, "i64"))
    return xt.scalar(past, "i64") if isinstance(past, int) else xt.dim(value=past)


def _explicit(cx: Context, q: Value, k: Value, v: Value, mask: Value | None, scale: float
              ) -> tuple[Value, Value]:
    """Attention step by step, for a node that also wants its scores."""
    groups = shared_heads(q, k)
    k, v = (repeat_heads(x, groups) for x in (k, v))
    raw = scores(q, k, scale)
    capped = _capped(raw, cx.attr("softcap", 0.0))
    bent = masked(capped, mask)
    weights = xt.softmax(bent, axis=-1)
    weights = xt.select(xt.is_nan(weights), scalar(0, weights), weights)
    stages = (raw, capped, bent, weights)
    return weighted(weights, v), stages[cx.attr("qk_matmul_output_mode", 0)]


def _capped(x: Value, cap: float) -> Value:
    return xt.mul(xt.tanh(xt.div(x, scalar(cap, x))), scalar(cap, x)) if cap else x


def attend_with_sinks(q: Value, k: Value, v: Value, mask: Value | None, sinks: Value, scale: float, cap: float
                      ) -> Value:
    """Attention whose softmax has one more score in each row, `sinks`, that takes its part and gives nothing."""
    groups = shared_heads(q, k)
    k, v = (repeat_heads(x, groups) for x in (k, v))
    bent = masked(_capped(scores(q, k, scale), cap), mask)
    columns = xt.shape_of(bent)[3]
    more = xt.broadcast(convert(sinks, element(bent)), shape=(*xt.shape_of(bent)[:3], 1))
    weights = xt.softmax(xt.concatenate(bent, more, axis=3), axis=-1)
    return weighted(slice_axis(weights, 3, 0, columns), v)

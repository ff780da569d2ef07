"""Attention of com.microsoft: what onnxruntime's optimisers and exporters of language models write."""

from __future__ import annotations

from math import sqrt

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.attention import attend_with_sinks, head_size, merge_heads, seen_keys, split_heads, turn
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.onnx.microsoft_quant import scaled
from xcc.frontends.onnx.quant import centered
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import along, convert, dim_scalar, element, rank_of, squeeze, unsqueeze
from xcc.frontends.shared.helpers import split as split_axis
from xcc.frontends.shared.products import matmul
from xcc.symbolic import Dim

MS = "com.microsoft"


@onnx_op("RotaryEmbedding", domain=MS)
def rotary_embedding(cx: Context) -> Value:
    """output = RotaryEmbedding(input, position_ids, cos_cache, sin_cache): one position starts all rows."""
    if cx.attr("is_packed_batching", 0):
        cx.fail("packed batches are not supported")
    x, flat = cx[0], cx.rank(0) == 3
    size = cx.attr("rotary_embedding_dim", 0) or cx.shape(2)[1] * 2
    heads = cx.attr("num_heads", 0) or symbolic.floordiv(cx.shape(0)[-1], size)
    x = split_heads(x, heads) if flat else x
    places = convert(cx[1], "i64")
    if cx.rank(1) == 1:
        places = xt.add(unsqueeze(places, [1]), _count(xt.shape_of(x)[2]))
    cos, sin = (unsqueeze(xt.gather(cx[i], places, axis=0), [1]) for i in (2, 3))
    out = turn(x, cos, sin, size, bool(cx.attr("interleaved", 0)))
    return merge_heads(out) if flat else out


def _count(n: Dim) -> Value:
    """[1, n]: 0, 1, 2, ..."""
    return xt.iota(shape=(1, n), axis=1, dtype="i64")


@onnx_op("MultiHeadAttention", domain=MS)
def multi_head_attention(cx: Context) -> tuple[Value, Value, Value]:
    """output, present_key?, present_value? of query, key?, value?, bias?, key_padding_mask?, attention_bias?, past."""
    if len(cx) > 8 and any(cx.has(i) for i in (8, 9)):
        cx.fail("a cache with its length or with indirection (beam search) is not supported")
    if cx.wants(3):
        cx.fail("the output of scores is not supported")
    heads = cx.attr("num_heads", 0)
    q, k, v = _with_bias(cx, _operands(cx, heads), heads)
    if cx.has(6):
        k, v = (xt.concatenate(cx[i], x, axis=2) for i, x in ((6, k), (7, v)))
    past = cx.shape(6)[2] if cx.has(6) else 0
    mask = _sum(_padding(cx, 4, q, k), convert(cx[5], element(q)) if cx.has(5) else None)
    return merge_heads(_attend(cx, q, k, v, mask, past)), k, v


def _attend(cx: Context, q: Value, k: Value, v: Value, mask: Value | None, past: Dim) -> Value:
    return xt.attention(q, k, v, mask, scale=_scale(cx, q),
                        causal=bool(cx.attr("unidirectional", 0)), causal_offset=(past,))


def _scale(cx: Context, q: Value) -> float:
    return float(cx.attr("scale", 0.0) or 1 / sqrt(head_size(cx, q)))


def _operands(cx: Context, heads: int) -> list[Value]:
    """q, k and v of [batch, heads, seq, dim], out of one packed operand, of two or of three."""
    if cx.rank(0) == 5:
        return _apart(cx[0], 3)
    q = split_heads(cx[0], heads)
    if cx.rank(1) == 5:
        return [q, *_apart(cx[1], 2)]
    return [q, *(cx[i] if cx.rank(i) == 4 else split_heads(cx[i], heads) for i in (1, 2))]


def _apart(x: Value, count: int) -> list[Value]:
    """[batch, seq, heads, count, dim] -> `count` of [batch, heads, seq, dim]."""
    parts = split_axis(x, 3, (1,) * count)
    return [xt.transpose(squeeze(p, [3]), perm=(0, 2, 1, 3)) for p in parts]


def _with_bias(cx: Context, operands: list[Value], heads: int) -> list[Value]:
    """The projections' bias, of q, k and v in a row; cached keys and values have theirs."""
    if not cx.has(3):
        return operands
    sizes = [xt.shape_of(x)[3] * heads for x in operands]
    parts = split_axis(cx[3], 0, sizes)
    cached = len(cx) > 1 and cx.has(1) and cx.rank(1) == 4
    return [x if cached and n else xt.add(x, xt.reshape(b, shape=(heads, 1, xt.shape_of(x)[3])))
            for n, (x, b) in enumerate(zip(operands, parts, strict=True))]


def _padding(cx: Context, i: int, q: Value, k: Value) -> Value | None:
    """What operand `i` adds to the scores: lengths, or marks of the keys that are seen; None without any."""
    if not cx.has(i):
        return None
    mask, shape = convert(cx[i], "i64"), cx.shape(i)
    batch, columns = xt.shape_of(q)[0], xt.shape_of(k)[2]
    if len(shape) == 1:
        if shape[0] != batch:
            cx.fail(f"a mask of shape [{shape[0]}] is supported for a batch of {shape[0]} alone, not of {batch}")
        seen = xt.compare(_count(columns), along(mask, 0, 2), direction="lt")
    else:
        seen = xt.compare(mask, xt.scalar(0, "i64"), direction="gt")
    between = [1, 2] if rank_of(seen) == 2 else [1]
    if rank_of(seen) == 4:
        cx.fail("masks of rank 4 are not supported")
    kind = element(q)
    return xt.select(unsqueeze(seen, between), xt.scalar(0.0, kind),
                     xt.scalar(cx.attr("mask_filter_value", -10000.0), kind))


def _sum(a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return b if a is None else a
    return xt.add(a, b)


@onnx_op("Attention", domain=MS)
def fused_attention(cx: Context) -> tuple[Value, Value | None]:
    """output, present? = Attention(input, weights, bias?, mask_index?, past?, attention_bias?) with its projections."""
    packed = xt.dot_general(cx[0], cx[1], lhs_contract=(2,), rhs_contract=(0,))
    return _projected(cx, xt.add(packed, cx[2]) if cx.has(2) else packed, mask=3, past=4, bias=5)


@onnx_op("QAttention", domain=MS)
def quantised_attention(cx: Context) -> tuple[Value, Value | None]:
    """Attention whose projections are products of bytes: input, weight, bias, input_scale, weight_scale, mask_index?,
    input_zero_point?, weight_zero_point?, past?."""
    total = matmul(centered(cx[0], cx.optional(6), -2), centered(cx[1], cx.optional(7), -1))
    return _projected(cx, scaled(cx, total, cx[3], cx[4], 2), mask=5, past=8, bias=9)


def _projected(cx: Context, packed: Value, mask: int, past: int, bias: int) -> tuple[Value, Value | None]:
    """The attention of `packed` [batch, seq, q + k + v]; the operands of its mask, cache and bias of scores."""
    if cx.attr("do_rotary", 0):
        cx.fail("do_rotary is not supported; RotaryEmbedding is")
    if cx.attr("past_present_share_buffer", 0):
        cx.fail("a cache that past and present share is not supported")
    heads, sizes = cx.attr("num_heads", 1), cx.attr("qkv_hidden_sizes")
    third = symbolic.floordiv(cx.shape(1)[1], 3)
    q, k, v = (split_heads(x, heads) for x in split_axis(packed, 2, tuple(sizes or (third, third, third))))
    length: Dim = 0
    if cx.has(past):
        cached, length = split_axis(cx[past], 0, (1, 1)), cx.shape(past)[3]
        k, v = (xt.concatenate(squeeze(old, [0]), x, axis=2) for old, x in zip(cached, (k, v), strict=True))
    hidden = _sum(_padding(cx, mask, q, k), convert(cx[bias], element(q)) if cx.has(bias) else None)
    present = xt.concatenate(unsqueeze(k, [0]), unsqueeze(v, [0]), axis=0) if cx.wants(1) else None
    return merge_heads(_attend(cx, q, k, v, hidden, length)), present


@onnx_op("GroupQueryAttention", domain=MS)
def group_query_attention(cx: Context) -> tuple[Value, Value, Value]:
    """output, present_key, present_value: new keys are written behind those that each row of the batch has.

    Operands: query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos_cache?, sin_cache?,
    position_ids?, attention_bias?, head_sink?. A row's length, new tokens counted, is seqlens_k + 1.
    """
    for name in ("k_quant_type", "v_quant_type"):
        if cx.attr(name, "NONE") not in ("NONE", b"NONE"):
            cx.fail("caches of narrow numbers are not supported")
    if any(cx.has(i) for i in range(12, len(cx))) or cx.wants(3):
        cx.fail("norms and scales of heads, lengths of queries and the output of scores are not supported")
    if cx.attr("causal", 1) == 0 or cx.attr("sliding_window_cache", 0):
        cx.fail("causal=0 and sliding_window_cache are not supported")
    q, k, v = _grouped(cx)
    new, total = xt.shape_of(q)[2], cx.dims(6)[0]
    begin = _begin(cx, new, total)
    if cx.attr("do_rotary", 0):
        q, k = _turned(cx, q, k, begin)
    k, v = (_appended(cx, i, x, begin, total) for i, x in ((3, k), (4, v)))
    return merge_heads(_attend_grouped(cx, q, k, v, begin)), k, v


def _grouped(cx: Context) -> list[Value]:
    heads, shared = cx.attr("num_heads"), cx.attr("kv_num_heads")
    if cx.has(1):
        return [split_heads(cx[i], n) for i, n in enumerate((heads, shared, shared))]
    size = symbolic.floordiv(cx.shape(0)[2], heads + 2 * shared)
    parts = split_axis(cx[0], 2, (heads * size, shared * size, shared * size))
    return [split_heads(x, n) for x, n in zip(parts, (heads, shared, shared), strict=True)]


def _begin(cx: Context, new: Dim, total: Dim) -> Value:
    """[batch, 1]: how many keys each row has before the new ones; a prompt, which is all there is, starts at 0."""
    batch = cx.shape(0)[0]
    if new == total:
        return xt.broadcast(xt.scalar(0, "i64"), shape=(batch, 1))
    lengths = xt.reshape(convert(cx[5], "i64"), shape=(batch, 1))
    missing = xt.sub(dim_scalar(new, "i64"), xt.scalar(1, "i64"))
    prompt = xt.compare(dim_scalar(new, "i64"), dim_scalar(total, "i64"), direction="eq")
    return xt.select(prompt, xt.scalar(0, "i64"), xt.sub(lengths, missing))


def _turned(cx: Context, q: Value, k: Value, begin: Value) -> tuple[Value, Value]:
    places = convert(cx[9], "i64") if cx.has(9) else xt.add(begin, _count(xt.shape_of(q)[2]))
    cos, sin = (unsqueeze(xt.gather(cx[i], places, axis=0), [1]) for i in (7, 8))
    size, interleaved = cx.shape(7)[1] * 2, bool(cx.attr("rotary_interleaved", 0))
    return turn(q, cos, sin, size, interleaved), turn(k, cos, sin, size, interleaved)


def _appended(cx: Context, i: int, x: Value, begin: Value, total: Dim) -> Value:
    """The cache of operand `i`, made as long as `total` where it is shorter, with `x` in it from `begin` on."""
    batch, heads, new, size = xt.shape_of(x)
    past: Dim = cx.shape(i)[2] if cx.has(i) else 0
    if past == 0 and new == total:
        return x
    length = symbolic.dim_max(past, total)
    room: Shape = (0, 0, length - past, 0)
    cache = cx[i] if cx.has(i) else xt.broadcast(xt.scalar(0.0, element(x)), shape=(batch, heads, 0, size))
    cache = xt.pad(cache, low=(0,) * 4, high=room, value=0.0) if room[2] != 0 else cache
    places = xt.reshape(xt.add(begin, _count(new)), shape=(batch, 1, new, 1))
    return xt.scatter_elements(cache, places, x, axis=2)


def _attend_grouped(cx: Context, q: Value, k: Value, v: Value, begin: Value) -> Value:
    rows, columns = xt.shape_of(q)[2], xt.shape_of(k)[2]
    window = cx.attr("local_window_size", -1)       # its own key counts
    mask = seen_keys(unsqueeze(begin, [2, 3]), rows, columns, max(window - 1, -1), 0)
    if cx.has(10):
        bias = convert(cx[10], element(q))
        missing = columns - cx.shape(10)[3]
        if missing != 0:
            bias = xt.pad(bias, low=(0,) * 4, high=(0, 0, 0, missing), value=0.0)
        mask = xt.select(mask, bias, xt.scalar(float("-inf"), element(q)))
    scale, cap = _scale(cx, q), cx.attr("softcap", 0.0)
    if cx.has(11) or cx.attr("smooth_softmax", 0) > 0:
        sinks = xt.reshape(cx[11], shape=(1, xt.shape_of(q)[1], 1, 1)) if cx.has(11) else xt.scalar(0.0, element(q))
        return attend_with_sinks(q, k, v, mask, sinks, scale, cap)
    return xt.attention(q, k, v, mask, scale=scale, softcap=cap)

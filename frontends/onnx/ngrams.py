"""N-grams of tokens that are numbers."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import Array
from xcc.dim_functions import dim_max
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, full, scalar, slice_axis, unsqueeze


@onnx_op("TfIdfVectorizer", since=9)
def count_ngrams(cx: Context) -> Value:
    """Y [.., m]: how often each n-gram of the pool is in X [.., c], up to max_skip_count tokens left out between two
    of its own; as TF, or as IDF and TFIDF times its weight."""
    if cx.attr("pool_strings"):
        cx.fail("works on strings, which xt has no type for; pool_int64s is supported")
    mode, places = cx.attr("mode"), np.asarray(cx.attr("ngram_indexes"), np.int64)
    x = cx[0] if cx.rank(0) == 2 else unsqueeze(cx[0], [0])
    rows = xt.shape_of(x)[0]
    counts = convert(xt.concatenate(*(_counts(cx, x, grams) for grams in _pools(cx)), axis=1), "f32")
    if mode == "IDF":
        counts = convert(xt.compare(counts, scalar(0, counts), direction="gt"), "f32")
    if mode != "TF" and cx.attr("weights"):
        counts = xt.mul(counts, xt.constant(np.asarray(cx.attr("weights")), "f32"))
    indices, width = xt.broadcast(xt.constant(places), shape=(rows, len(places))), int(places.max()) + 1
    out = xt.scatter_elements(full((rows, width), 0, "f32"), indices, counts, axis=1, reduction="add")
    return out if cx.rank(0) == 2 else xt.reshape(out, shape=xt.shape_of(out)[1:])


def _pools(cx: Context) -> list[Array]:
    """The n-grams [count, n] of each length n; none is counted of a length that is not asked for."""
    pool, starts = np.asarray(cx.attr("pool_int64s"), np.int64), [*cx.attr("ngram_counts")]
    ends = [*starts[1:], pool.size]
    return [pool[a:b].reshape(-1, n) for n, (a, b) in enumerate(zip(starts, ends, strict=True), 1) if b > a]


def _counts(cx: Context, x: Value, grams: Array) -> Value:
    """How often each row of `x` has each of `grams`, i64 [rows, count]."""
    rows, length = xt.shape_of(x)
    count, n = grams.shape
    total = full((rows, count), 0, "i64")
    if not cx.attr("min_gram_length") <= n <= cx.attr("max_gram_length"):
        return total
    for step in range(1, 2 + (cx.attr("max_skip_count") if n > 1 else 0)):
        span = step * (n - 1)
        longer, many = xt.pad(x, low=(0, 0), high=(0, span)), dim_max(length - span, 0)
        same = full((1, 1, 1), True, "i1")
        for i in range(n):
            token = unsqueeze(convert(slice_axis(longer, 1, i * step, i * step + many), "i64"), [2])
            same = xt.and_(same, xt.compare(token, xt.constant(grams[:, i]), direction="eq"))
        total = xt.add(total, xt.reduce(convert(same, "i64"), kind="sum", axes=(1,)))
    return total

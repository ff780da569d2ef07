"""Attention whose keys and values lie in several buffers: nothing is put together, a loop follows another."""

from __future__ import annotations

import numpy as np
import pytest
from attention_kernels import build, normal, run

from xcc import symbolic
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret

H = np.float16


def in_pieces(q, *rest, pieces=2, **attributes):
    """rest: pieces of keys, as many of values, and perhaps a mask."""
    keys, values = (xt.concatenate(*rest[n:n + pieces], axis=2) for n in (0, pieces))
    return xt.attention(q, keys, values, *rest[2 * pieces:], **attributes)


def cached(batch, heads, shared, queries, sizes, features, dtype=H):
    """Queries, then keys and values in pieces of `sizes`."""
    rest = [normal(batch, shared, n, features, dtype=dtype) for _ in "kv" for n in sizes]
    return [normal(batch, heads, queries, features, dtype=dtype), *rest]


CASES = {
    "decode": (cached(2, 3, 3, 1, (128, 1), 64), {}, {}),
    "decode_odd": (cached(1, 2, 2, 1, (77, 1), 40), {}, {}),
    "decode_few": (cached(1, 2, 2, 1, (9, 1), 32), {}, {}),
    "decode_grouped": (cached(1, 4, 2, 1, (130, 1), 64), {}, {}),
    "three_tokens": (cached(1, 2, 2, 3, (77, 3), 32), {"causal": True, "causal_offset": (77,)}, {}),
    "prefill": (cached(1, 2, 1, 70, (64, 70), 64), {"causal": True, "causal_offset": (64,)}, {}),
    "first_of_one": (cached(1, 1, 1, 20, (1, 100, 33), 32), {"softcap": 3.0}, {}),
    "f32": (cached(1, 2, 2, 9, (70, 9), 32, np.float32), {}, {}),
    "masked": ([*cached(1, 2, 2, 1, (77, 1), 32), normal(1, 1, 1, 78)], {}, {}),
    "parts": (cached(1, 2, 2, 1, (300, 1), 64), {}, {"splits": 4}),
    "parts_odd": (cached(1, 2, 2, 20, (100, 90), 32), {}, {"splits": 3}),
}


CHIPS = ("sm_90a", "gfx942", "sm_80", "gfx1100")


@pytest.mark.parametrize(("case", "chip"), [(case, CHIPS[n % 4]) for n, case in enumerate(CASES)])
def test_pieces(case, chip):
    arrays, attributes, schedule = CASES[case]
    pieces = len(arrays) // 2 - (len(arrays) % 2 == 0)
    module = build(arrays, [None] * len(arrays), attributes, lambda *v, **a: in_pieces(*v, pieces=pieces, **a))
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {}, chip, **schedule)
    assert "vector.gather" not in text
    tolerance = 2e-3 if want.dtype == H else 1e-5
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("past", "new", "splits"), [(128, 1, 0), (70, 5, 4), (3, 90, 4), (0, 40, 0)])
def test_unknown_sizes(past, new, splits):
    arrays = cached(1, 2, 2, new, (past, new), 32)
    shapes = [(1, 2, n, 32) for n in ("n", "m", "n", "m", "n")]
    causal = {"causal": True, "causal_offset": (symbolic.parse("m"),)}
    module = build(arrays, shapes, causal, in_pieces)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    run(module, arrays, out, {"n": new, "m": past}, splits=splits, busy=8 if splits else 0)
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)

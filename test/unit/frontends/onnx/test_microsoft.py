"""Ops of com.microsoft: what they mean, evaluated by the xt dialect, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from microsoft_ops import BATCH, HEADS, RNG, SEQ, SIZE, WIDTH, check, drawn, evaluated, model

from xcc.diagnostics import UserError


def test_rotary_embedding():
    cos, sin = drawn(16, SIZE // 2), drawn(16, SIZE // 2)
    places = RNG.integers(0, 16, (BATCH, SEQ))
    check("RotaryEmbedding", [drawn(BATCH, SEQ, WIDTH), places, cos, sin])
    check("RotaryEmbedding", [drawn(BATCH, SEQ, WIDTH), np.array([3]), cos, sin], interleaved=1)
    check("RotaryEmbedding", [drawn(BATCH, HEADS, SEQ, SIZE), places, cos, sin])
    check("RotaryEmbedding", [drawn(BATCH, SEQ, WIDTH), places, cos[:, :2], sin[:, :2]], num_heads=HEADS,
          rotary_embedding_dim=4)


@pytest.mark.parametrize("mask", [None, "lengths", "marks", "square"])
@pytest.mark.parametrize("past", [0, 3])
def test_multi_head_attention(mask, past):
    total = SEQ + past
    marks = {"lengths": np.array([total, 2], np.int32), "square": RNG.integers(0, 2, (BATCH, SEQ, total), np.int32),
             "marks": RNG.integers(0, 2, (BATCH, total), np.int32), None: None}[mask]
    if marks is not None and mask != "lengths":
        marks[..., 0] = 1
    cache = [drawn(BATCH, HEADS, past, SIZE) for _ in range(2)] if past else [None, None]
    for bias, more, causal in ((None, None, 1), (drawn(3 * WIDTH), drawn(1, HEADS, SEQ, total), 0)):
        x = [drawn(BATCH, SEQ, WIDTH) for _ in range(3)]
        check("MultiHeadAttention", [*x, bias, marks, more, *cache], 3 if past else 1, num_heads=HEADS,
              unidirectional=causal)


def test_multi_head_attention_over_cached_keys():
    check("MultiHeadAttention", [drawn(BATCH, SEQ, WIDTH), *(drawn(BATCH, HEADS, 7, SIZE) for _ in range(2))],
          num_heads=HEADS, scale=0.5)


def test_multi_head_attention_packed():
    """onnxruntime has these on GPUs alone: the same as apart."""
    q, k, v = (drawn(BATCH, SEQ, HEADS, SIZE) for _ in range(3))
    apart = [x.reshape(BATCH, SEQ, WIDTH) for x in (q, k, v)]
    for inputs in ([np.stack([q, k, v], 3)], [apart[0], np.stack([k, v], 3)]):
        results = [evaluated(model("MultiHeadAttention", x, 1, num_heads=HEADS), {f"x{i}": a for i, a in enumerate(x)})
                   for x in (inputs, apart)]
        np.testing.assert_array_equal(*[r[0] for r in results])


@pytest.mark.parametrize("causal", [0, 1])
def test_fused_attention(causal):
    inputs = [drawn(BATCH, SEQ, 12), drawn(12, 3 * WIDTH), drawn(3 * WIDTH)]
    check("Attention", inputs, num_heads=HEADS, unidirectional=causal)
    check("Attention", [*inputs, np.array([SEQ, 2], np.int32)], num_heads=HEADS, unidirectional=causal)
    marks = np.ones((BATCH, SEQ + 3), np.int32)
    marks[1, 4:] = 0
    check("Attention", [*inputs, marks, drawn(2, BATCH, HEADS, 3, SIZE)], 2, num_heads=HEADS, unidirectional=causal)
    check("Attention", [*inputs, None, None, drawn(BATCH, HEADS, SEQ, SEQ)], num_heads=HEADS, unidirectional=causal)


def grouped(new: int, past: int, lengths: Sequence[int], total: int, packed: bool = False) -> list[Any]:
    shared = 2 * SIZE
    q = [drawn(BATCH, new, WIDTH + 2 * shared), None, None] if packed else \
        [drawn(BATCH, new, WIDTH), drawn(BATCH, new, shared), drawn(BATCH, new, shared)]
    return [*q, *(drawn(BATCH, 2, past, SIZE) for _ in range(2)), np.array(lengths, np.int32) - 1,
            np.array(total, np.int32)]


@pytest.mark.parametrize("new, past, lengths, total", [
    (5, 0, (5, 5), 5), (5, 8, (5, 5), 5), (1, 8, (4, 7), 7), (1, 6, (7, 7), 7), (1, 6, (7, 3), 7)],
    ids=["prompt", "prompt-in-a-buffer", "step-in-a-buffer", "step", "step-of-uneven-rows"])
@pytest.mark.parametrize("rotary", [0, 1])
def test_group_query_attention(new, past, lengths, total, rotary):
    inputs = grouped(new, past, lengths, total)
    if rotary:
        inputs += [drawn(16, SIZE // 2), drawn(16, SIZE // 2)]
    common = {"num_heads": HEADS, "kv_num_heads": 2, "do_rotary": rotary, "constant": (6,), "filled": lengths}
    check("GroupQueryAttention", inputs, 3, **common)
    check("GroupQueryAttention", inputs, 3, local_window_size=3, softcap=5.0, **common)
    inputs[:3] = grouped(new, past, lengths, total, packed=True)[:3]
    check("GroupQueryAttention", inputs, 3, rotary_interleaved=rotary, scale=0.3, **common)


def test_group_query_attention_with_bias_and_sinks():
    inputs = [*grouped(5, 0, (5, 5), 5), None, None, None, drawn(1, HEADS, 5, 5)]
    common = {"num_heads": HEADS, "kv_num_heads": 2, "constant": (6,)}
    check("GroupQueryAttention", inputs, 3, **common)
    check("GroupQueryAttention", [*inputs[:10], None, drawn(HEADS)], 3, **common)
    check("GroupQueryAttention", inputs[:7], 3, smooth_softmax=1, **common)


def test_group_query_attention_of_a_length_that_an_input_tells():
    """One import serves caches that grow and caches of a fixed room."""
    free = {0: ("b", "new", WIDTH + 4 * SIZE), 3: ("b", 2, "past", SIZE), 4: ("b", 2, "past", SIZE), 5: ("b",)}
    for new, past, total in ((1, 6, 7), (4, 0, 4), (1, 9, 7)):
        inputs = grouped(new, past, (total, total), total, packed=True)
        check("GroupQueryAttention", inputs, 3, num_heads=HEADS, kv_num_heads=2, free=free, filled=(total,))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matrices_of_few_bits(bits):
    n, k, size = 6, 40, 16
    blocks = -(-k // size)
    packed = RNG.integers(0, 255, (n, blocks, size * bits // 8), np.uint8)
    zeros = RNG.integers(0, 255, (n, -(-blocks * bits // 8)), np.uint8)
    inputs = [drawn(3, k), packed, drawn(n, blocks)]
    common = {"K": k, "N": n, "bits": bits, "block_size": size}
    check("MatMulNBits", [*inputs, zeros, None, drawn(n)], constant=(1, 2, 3), **common)
    if bits == 4:       # a block for each column, as GPTQ's order of activations has it
        groups = RNG.permutation(np.arange(k) // size).astype(np.int32)
        for points in (None, drawn(n, blocks)):     # beside packed ones onnxruntime takes 8
            check("MatMulNBits", [*inputs, points, groups], constant=(1, 2, 4), **common)


def numbers(*shape: int) -> tuple[Any, Any, Any]:
    """Bytes, with their scale and zero point."""
    return RNG.integers(0, 255, shape, np.uint8), np.array(0.02, np.float32), np.array(120, np.uint8)


@pytest.mark.parametrize("causal", [0, 1])
def test_quantised_attention(causal):
    x, scale, zero = numbers(BATCH, SEQ, 12)
    weight = RNG.integers(-127, 127, (12, 3 * WIDTH)).astype(np.int8)
    inputs = [x, weight, drawn(3 * WIDTH), scale, np.array(0.03, np.float32)]
    common = {"num_heads": HEADS, "unidirectional": causal}
    check("QAttention", [*inputs, np.array([SEQ, 2], np.int32), zero, np.array(3, np.int8)], **common)
    past = drawn(2, BATCH, HEADS, 3, SIZE)
    check("QAttention", [*inputs, np.ones((BATCH, SEQ + 3), np.int32), zero, None, past], 2, **common)
    rows = [*inputs[:4], np.abs(drawn(3 * WIDTH)) / 50, None, zero, RNG.integers(-9, 9, 3 * WIDTH).astype(np.int8)]
    check("QAttention", rows, constant=(1,), **common)


def test_quantised_embed_layer_normalization():
    tokens, kinds = (RNG.integers(0, n, (BATCH, SEQ)).astype(np.int32) for n in (11, 2))
    tables, scales, zeros = zip(*(numbers(*s) for s in ((11, 16), (SEQ, 16), (2, 16), (16,), (16,))), strict=True)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    check("QEmbedLayerNormalization", [tokens, kinds, *tables, mask, *scales, *zeros], 2)


@pytest.mark.parametrize("direction, count", [("forward", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("columns", [False, True])
def test_lstm_with_matrices_of_bytes(direction, count, columns):
    """The same as the LSTM of the floats that the bytes stand for."""
    w, r = (RNG.integers(-127, 127, (count, n, 12)).astype(np.int8) for n in (5, 3))
    wide = (count, 12) if columns else (count,)
    scales, zeros = np.abs(drawn(2, *wide)) / 100, RNG.integers(-9, 9, (2, *wide)).astype(np.int8)
    own = [(m - z.reshape(count, 1, -1).astype(np.float32)) * s.reshape(count, 1, -1)
           for m, s, z in zip((w, r), scales, zeros, strict=True)]
    x, bias, length = drawn(SEQ, BATCH, 5), drawn(count, 24), np.array([5, 2], np.int32)
    inputs = [x, w, r, bias, length, None, None, None, scales[0], zeros[0], scales[1], zeros[1]]
    options = {"hidden_size": 3, "direction": direction}
    made = model("DynamicQuantizeLSTM", inputs, 3, **options)
    got = evaluated(made, {f"x{i}": a for i, a in enumerate(inputs) if a is not None})
    plain = [x, *(m.transpose(0, 2, 1) for m in own), bias, length]
    made = model("LSTM", plain, 3, domain="", **options)
    want = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {f"x{i}": a for i, a in enumerate(plain)})
    for g, wanted in zip(got, want, strict=True):
        np.testing.assert_allclose(g, wanted, atol=2e-5)


def steps(op: str, inputs: Sequence[Any], **options: Any) -> None:
    """Results in bytes may be a step beside onnxruntime's, which rounds sums of floats of other orders."""
    check(op, inputs, atol=1, **options)


def test_quantised_softmax_pool_and_where():
    x, scale, zero = numbers(2, 3, 8, 9)
    unit = [np.array(1 / 256, np.float32), np.array(0, np.uint8)]
    for axis, opset in ((-1, 13), (1, 13), (1, 12)):
        steps("QLinearSoftmax", [x, np.asarray(scale * 2), zero, *unit], axis=axis, opset=opset)
    out = [np.array(0.015, np.float32), np.array(110, np.uint8)]
    for more in ({}, {"ceil_mode": 1}, {"pads": [1, 0, 1, 1]}, {"pads": [1, 0, 1, 1], "count_include_pad": 1}):
        steps("QLinearAveragePool", [x, scale, zero, *out], kernel_shape=[3, 2], strides=[2, 2], **more)
    y, _, other = numbers(3, 1, 9)
    steps("QLinearWhere", [RNG.random((2, 1, 8, 1)) < 0.5, x, scale, zero, y, np.asarray(scale * 3), other, *out])


def test_what_attention_does_not_take_is_an_error():
    inputs, common = grouped(5, 0, (5, 5), 5), {"num_heads": HEADS, "kv_num_heads": 2, "constant": (6,)}
    norm = [*inputs, *[None] * 7, drawn(SIZE), drawn(SIZE)]
    for given, more, why in ((inputs, {"causal": 0}, "causal"), (norm, {}, "norms")):
        with pytest.raises(UserError, match=why):
            evaluated(model("GroupQueryAttention", given, 3, **common, **more), {})


@pytest.mark.parametrize("a_turned, b_turned", [(0, 1), (1, 0), (1, 1)])
def test_products_whose_batch_lies_second(a_turned, b_turned):
    a, b = drawn(2, 3, 4, 5), drawn(2, 3, 5, 6)
    for trans in (0, 1):
        x = a.transpose(0, 1, 3, 2) if trans else a
        x, y = (np.ascontiguousarray(np.moveaxis(v, 2, 0)) if t else v for v, t in ((x, a_turned), (b, b_turned)))
        check("FusedMatMul", [x, y], transA=trans, transBatchA=a_turned, transBatchB=b_turned, alpha=0.5)


def test_embed_layer_normalization():
    tokens, kinds = (RNG.integers(0, n, (BATCH, SEQ)).astype(np.int32) for n in (11, 2))
    tables = [drawn(11, 16), drawn(SEQ + 2, 16), drawn(2, 16), drawn(16), drawn(16)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    check("EmbedLayerNormalization", [tokens, kinds, *tables, mask], 2)
    check("EmbedLayerNormalization", [tokens, None, *tables[:2], None, *tables[3:]], 2)


def test_products_of_bytes_to_floats():
    a, b = RNG.integers(0, 255, (3, 16), np.uint8), RNG.integers(-127, 127, (16, 6)).astype(np.int8)
    scale, zero = np.array(0.02, np.float32), np.array(130, np.uint8)
    check("MatMulIntegerToFloat", [a, b, scale, drawn(6), zero, None, drawn(6)], atol=1e-4)
    check("DynamicQuantizeMatMul", [drawn(3, 16), b, np.array([0.03], np.float32), np.array([3], np.int8), drawn(6)],
          atol=1e-4)


def test_gather_block_quantized():
    table, rows = RNG.integers(0, 255, (9, 16), np.uint8), RNG.integers(0, 9, (2, 3))
    scales, zeros = drawn(9, 2), RNG.integers(0, 255, (9, 1), np.uint8)
    common = {"block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    for bits, count in ((4, 2), (8, 1)):
        check("GatherBlockQuantized", [table, rows, scales[:, :count]], bits=bits, **common)
    check("GatherBlockQuantized", [table, rows, scales, zeros], bits=4, **common)

"""Ops of com.microsoft: what they mean, evaluated by the xt dialect, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from xcc._mlir import ir
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx import importer

RNG = np.random.default_rng(0)
BATCH, SEQ, HEADS, SIZE = 2, 5, 4, 16
WIDTH = HEADS * SIZE


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model(op: str, inputs: Sequence[Any], outputs: int, free: dict[int, Sequence[Any]] | None = None,
          constant: Sequence[int] = (), domain: str = "com.microsoft", **attributes: Any) -> Any:
    """One node. `free` has shapes with symbols for some inputs; those of `constant` are weights."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    kind = helper.np_dtype_to_tensor_dtype
    given = [helper.make_tensor_value_info(n, kind(x.dtype), (free or {}).get(i, x.shape))
             for i, (n, x) in enumerate(zip(names, inputs, strict=True)) if n and i not in constant]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    weights = [numpy_helper.from_array(inputs[i], names[i]) for i in constant]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", given, results, weights), opset_imports=sets, ir_version=10)


def evaluated(made: Any, feeds: dict[str, Any]) -> Any:
    with ir.Context():
        module, weights = importer.load(made)
        return interpret(module, feeds, weights)


def check(op: str, inputs: Sequence[Any], outputs: int = 1, atol: float = 2e-5, filled: Sequence[int] = (),
          **options: Any) -> None:
    """`filled` are the lengths of the rows of caches: what is behind them is nobody's."""
    made = model(op, inputs, outputs, **options)
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in options.get("constant", ())}
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    for g, want in zip(evaluated(made, feeds), session.run(None, feeds), strict=True):
        assert g.shape == want.shape and g.dtype == want.dtype
        if filled and g.ndim == 4:
            seen = np.arange(g.shape[2])[:, None] < np.reshape(filled, (-1, 1, 1, 1))
            g, want = np.where(seen, g, 0), np.where(seen, want, 0)
        np.testing.assert_allclose(g, want, atol=atol, rtol=1e-4)


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


def last(x: Any) -> Any:
    """[n, c, h, w] as [n, h, w, c]."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def same(op: str, inputs: Sequence[Any], nodes: Sequence[Any], feeds: dict[str, Any], **options: Any) -> None:
    """onnxruntime has `op` on GPUs alone: it gives what its `nodes`, which end in y0, give with the channels first."""
    results = [onnx.ValueInfoProto(name="y0")]
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in feeds.items()]
    plain = helper.make_model(helper.make_graph(nodes, "g", given, results), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21)])
    want, = onnxruntime.InferenceSession(plain.SerializeToString()).run(None, feeds)
    got = evaluated(model(op, inputs, 1, **options), {f"x{i}": a for i, a in enumerate(inputs) if a is not None})
    np.testing.assert_allclose(got[0], last(want) if want.ndim == 4 else want, atol=2e-5, rtol=1e-4)


def test_channels_last_of_diffusion_models():
    node = helper.make_node
    x, w, b = drawn(2, 8, 6, 5), drawn(12, 4, 3, 3), drawn(12)
    form = {"group": 2, "strides": [2, 1], "pads": [1] * 4}
    same("NhwcConv", [last(x), last(w), b], [node("Conv", ["x", "w", "b"], ["y0"], **form)],
         {"x": x, "w": w, "b": b}, **form)
    gamma, beta, skip, bias = drawn(8), drawn(8), drawn(2, 8, 1, 1), drawn(8)
    norm = node("GroupNormalization", ["x", "gamma", "beta"], ["n"], num_groups=4)
    silu = [node("Sigmoid", ["n"], ["s"]), node("Mul", ["n", "s"], ["y0"])]
    same("GroupNorm", [last(x), gamma, beta], [norm, *silu], {"x": x, "gamma": gamma, "beta": beta}, groups=4,
         activation=1)
    for narrow in (skip[:, :, 0, 0], last(skip)):
        same("SkipGroupNorm", [last(x), gamma, beta, narrow, bias],
             [node("Add", ["x", "k"], ["n0"]), node("Add", ["n0", "b"], ["x1"]),
              node("GroupNormalization", ["x1", "gamma", "beta"], ["y0"], num_groups=4)],
             {"x": x, "k": skip, "b": bias[:, None, None], "gamma": gamma, "beta": beta}, groups=4, activation=0)


def test_biases_of_diffusion_models():
    node = helper.make_node
    x, bias, skip = drawn(2, 5, 12), drawn(12), drawn(2, 5, 12)
    added = node("Add", ["x", "b"], ["t"])
    same("BiasAdd", [x, bias, skip], [added, node("Add", ["t", "k"], ["y0"])], {"x": x, "b": bias, "k": skip})
    halves = [node("Split", ["t"], ["l", "r"], axis=2, num_outputs=2), node("Gelu", ["r"], ["g"]),
              node("Mul", ["l", "g"], ["y0"])]
    same("BiasSplitGelu", [x, bias], [added, *halves], {"x": x, "b": bias})


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

"""Ops of com.microsoft that converters write: what they mean, evaluated by the xt dialect, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from microsoft_ops import RNG, check, drawn, evaluated, model

from xcc.diagnostics import UserError

TOKENS, HIDDEN, INNER, EXPERTS = 21, 32, 64, 4


def test_standard_ops_under_older_names():
    check("Trilu", [drawn(2, 4, 5), np.array(1, np.int64)], upper=0)
    check("Trilu", [drawn(3, 3)])
    check("TransposeMatMul", [drawn(2, 4, 3), drawn(2, 4, 5)], transA=1, alpha=0.5)
    for mode in ("bilinear", "nearest", "bicubic"):
        check("GridSample", [drawn(1, 2, 4, 5), drawn(1, 3, 3, 2)], mode=mode, padding_mode="reflection")
    check("Pad", [drawn(2, 3), np.array([1, 0, 0, 2]), np.array(0.5, np.float32)], constant=(1,))
    image = RNG.integers(-128, 127, (1, 7, 6, 3)).astype(np.int8)
    check("NhwcMaxPool", [image], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_inverse(n):
    check("Inverse", [drawn(4, n, n) + 2 * np.eye(n, dtype=np.float32)[::-1]], free={0: ("b", n, n)}, atol=1e-4)


def test_distances():
    for metric in ("euclidean", "sqeuclidean"):
        check("CDist", [drawn(5, 3), drawn(4, 3)], metric=metric, free={0: ("m", 3), 1: ("n", 3)})


@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeated_ngrams(size):
    ids = RNG.integers(0, 3, (3, 9))
    check("NGramRepeatBlock", [ids, drawn(3, 5)], ngram_size=size, free={0: ("b", "n")})
    check("NGramRepeatBlock", [ids[:, :2], drawn(3, 5)], ngram_size=size, free={0: ("b", "n")})


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crops(mode):
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 1.2], [0.9, -0.3, 0.2, 0.8]], np.float32)
    inputs = [drawn(2, 3, 6, 7), boxes, np.array([0, 1, 1], np.int32)]
    for size in ((3, 4), (1, 5)):
        check("CropAndResize", [*inputs, np.array(size, np.int32)], mode=mode, extrapolation_value=0.5, constant=(3,),
              free={1: ("r", 4), 2: ("r",)})


def experts(fused: int) -> list[Any]:
    return [drawn(EXPERTS, INNER * fused, HIDDEN), drawn(EXPERTS, INNER * fused), drawn(EXPERTS, HIDDEN, INNER),
            drawn(EXPERTS, HIDDEN)]


@pytest.mark.parametrize("kind", ["relu", "silu", "identity", "gelu", "swiglu"])
def test_experts(kind):
    fused = kind == "swiglu"
    more = {"swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 2.0} if fused else {}
    for tokens, free in ((TOKENS, True), (1, False)):
        inputs = [drawn(tokens, HIDDEN), drawn(tokens, EXPERTS), *experts(1 + fused)]
        check("MoE", inputs, k=2, activation_type=kind, normalize_routing_weights=int(free), atol=2e-3, **more,
              **({"free": {0: ("t", HIDDEN), 1: ("t", EXPERTS)}} if free else {}))


def test_experts_with_a_matrix_apart():
    """onnxruntime has these on GPUs alone: as with the same numbers in one matrix."""
    x, scores, (fc1, _, fc2, _) = drawn(2, 5, HIDDEN), drawn(10, EXPERTS), experts(2)
    apart = [x, scores, fc1[:, ::2], None, fc2, None, fc1[:, 1::2]]
    halves = [x, scores, np.concatenate([fc1[:, ::2], fc1[:, 1::2]], 1), None, fc2]
    results = [evaluated(model("MoE", v, 1, k=2, activation_type="swiglu", swiglu_fusion=fusion),
                         {f"x{i}": a for i, a in enumerate(v) if a is not None})[0]
               for v, fusion in ((apart, 0), (halves, 2), ([x, scores, fc1, None, fc2], 1))]
    for other in results[1:]:
        np.testing.assert_allclose(results[0], other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block, zeros", [(0, False), (16, False), (16, True)])
def test_experts_of_few_bits(bits, block, zeros):
    """As in f32 with what the numbers mean; onnxruntime rounds rows of 8 bits with blocks to bytes."""
    def packed(rows: int, depth: int) -> list[Any]:
        count = (EXPERTS, rows, depth // block) if block else (EXPERTS, rows)
        return [RNG.integers(0, 256, (EXPERTS, rows, depth * bits // 8), np.uint8),
                RNG.uniform(0.001, 0.002, count).astype(np.float32), None]

    def points(rows: int, depth: int) -> Any:
        return RNG.integers(0, 256, (EXPERTS, rows, depth // block * bits // 8), np.uint8) if zeros else None

    inputs = [drawn(TOKENS, HIDDEN), drawn(TOKENS, EXPERTS), *packed(INNER, HIDDEN), *packed(HIDDEN, INNER),
              None, None, None, points(INNER, HIDDEN), points(HIDDEN, INNER)]
    more = {"block_size": block} if block else {}
    rounded = 0.05 if block and bits == 8 else 2e-5
    check("QMoE", inputs, k=2, activation_type="silu", expert_weight_bits=bits, normalize_routing_weights=1,
          constant=[i for i in range(2, 13) if inputs[i] is not None], atol=rounded, **more)

    def split(x: Any) -> Any:
        return np.stack([x >> n & (1 << bits) - 1 for n in range(0, 8, bits)], -1).astype(np.int64)

    def meant(i: int, points: Any) -> Any:
        scale = inputs[i + 1] if block else inputs[i + 1][..., None]
        numbers = split(inputs[i]).reshape(*scale.shape, -1)
        zero = 1 << (bits - 1) if points is None else split(points).reshape(scale.shape)[..., None]
        return ((numbers - zero) * scale[..., None]).astype(np.float32).reshape(*scale.shape[:2], -1)

    wide = [*inputs[:2], meant(2, inputs[11]), None, meant(5, inputs[12])]
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    kind = {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1}
    got = evaluated(model("QMoE", inputs, 1, expert_weight_bits=bits, **kind, **more), feeds)[0]
    want = evaluated(model("MoE", wide, 1, **kind), {f"x{i}": x for i, x in enumerate(wide) if x is not None})[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_experts_that_are_not_supported():
    inputs = [drawn(3, HIDDEN), drawn(3, EXPERTS), *experts(1)]
    for attributes, message in (({"use_sparse_mixer": 1}, "use_sparse_mixer"), ({"activation_type": "x"}, "'x'")):
        with pytest.raises(UserError, match=message):
            evaluated(model("MoE", inputs, 1, **attributes), {})


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths, skip", [((1, 1), 0), ((2, 2), 5), ((1, 3), 1), ((3, 3), 2)])
def test_ngrams(mode, lengths, skip):
    options = {"mode": mode, "min_gram_length": lengths[0], "max_gram_length": lengths[1], "max_skip_count": skip,
               "ngram_counts": [0, 3, 9], "ngram_indexes": [1, 5, 0, 2, 6, 4, 7], "domain": "",
               "pool_int64s": [0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 1, 2], "weights": [0.5, 2, 3, 4, 5, 6, 7]}
    for x in (RNG.integers(0, 3, (4, 12)), RNG.integers(0, 3, (2, 2)), RNG.integers(0, 3, 9).astype(np.int32)):
        free = {0: ("b", "n")[-x.ndim:]}
        check("TfIdfVectorizer", [x], free=free, **options)

"""What training asks of GPUs, in the interpreter: filters' gradients, sums over rows, attention with what its gradient
reads."""

from __future__ import annotations

import math

import pytest
from compiled import build, check, compiled, filled, on_chip

from xcc.dialects import xt
from xcc.frontends.shared.convolution import filter_gradient
from xcc.runtime.program import Launch
from xcc.targets import gpu_contraction, gpu_convolution


@pytest.mark.parametrize(("chip", "kind", "shape", "outs", "kernel", "low", "strides"), [
    ("sm_90a", "float16", (4, 16, 9, 11), (24, 9, 11), (3, 3), (1, 1), (1, 1)),
    ("sm_90a", "float16", (2, 40, 9, 9), (64, 7, 7), (3, 3), (0, 0), (1, 1)),
    ("sm_80", "float32", (4, 24, 9, 11), (16, 5, 6), (3, 3), (1, 1), (2, 2)),
    ("sm_80", "float16", (3, 3, 12, 14), (16, 6, 7), (7, 7), (3, 3), (2, 2)),
    ("gfx942", "float16", (4, 24, 7, 9), (16, 4, 5), (3, 3), (1, 1), (2, 2))])
def test_gradients_of_filters(chip, kind, shape, outs, kernel, low, strides):
    with on_chip(chip):
        check(lambda x, g: filter_gradient(x, g, kernel, low, strides, (1, 1), 1),
              filled(shape, kind), filled((shape[0], *outs), kind, 1))


@pytest.mark.parametrize(("chip", "shape", "outs", "strides"), [
    ("sm_90a", (3, 16, 9, 11), (40, 9, 11), (1, 1)),     # the last step is no whole one
    ("gfx942", (16, 8, 7, 9), (32, 4, 5), (2, 2))])
def test_gradients_of_filters_by_several_cores_a_tile(chip, shape, outs, strides, monkeypatch):
    """Their sums over the pixels of all images are dealt out, as those of long ones are."""
    monkeypatch.setattr(gpu_contraction, "SURE", 1e-9)
    monkeypatch.setattr(gpu_contraction, "LONG", 64)
    seen = []
    own = gpu_contraction.matrix_tile
    monkeypatch.setattr(gpu_convolution, "matrix_tile", lambda *a, **k: seen.append(own(*a, **k)) or seen[-1])
    with on_chip(chip):
        check(lambda x, g: filter_gradient(x, g, (3, 3), (1, 1), strides, (1, 1), 1),
              filled(shape, "float16"), filled((shape[0], *outs), "float16", 1))
    assert seen[0].workers > 1


@pytest.mark.parametrize(("chip", "kind", "shape", "outs", "kernel", "low", "strides", "dilation"), [
    ("sm_90a,cores=2", "float16", (3, 32, 9, 8), (5, 4), (3, 3), (1, 1), (2, 2), 1),
    ("sm_90a,cores=2", "float16", (2, 32, 5, 19), (5, 19), (5, 5), (2, 2), (1, 1), 1),      # a line in two blocks
    ("sm_80,cores=2", "float32", (2, 32, 9, 7), (7, 3), (2, 3), (0, 0), (1, 1), 2),
    ("gfx942,cores=2", "float16", (3, 64, 9, 8), (5, 4), (3, 3), (1, 1), (2, 2), 1),
    ("gfx942", "float16", (3, 24, 9, 8), (5, 4), (3, 3), (1, 1), (2, 2), 1)])       # too few lines for its cores
def test_gradients_of_depthwise_filters(chip, kind, shape, outs, kernel, low, strides, dilation):
    with on_chip(chip):
        check(lambda x, g: filter_gradient(x, g, kernel, low, strides, (dilation, dilation), shape[1]),
              filled(shape, kind), filled((*shape[:2], *outs), kind, 1))


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
def test_gradients_of_a_head_of_odd_rows(chip):
    """Of 73 words: their gradient is read through one copy, along its columns."""
    def gradients(g, w, x):
        rows = xt.reshape(g, shape=(128, 73))
        return (xt.dot_general(g, w, lhs_contract=(2,), rhs_contract=(0,)),
                xt.dot_general(rows, x, lhs_contract=(0,), rhs_contract=(0,)))

    with on_chip(chip):
        check(gradients, *(filled(s, "float16", n) for n, s in enumerate(((2, 64, 73), (73, 256), (128, 256)))))


def test_gradients_of_norms_of_transposed_rows():
    """Sums over two dims that lie the other way round in memory: they are walked as they lie."""
    def scaled(x, g, mean):
        x, g = (xt.transpose(v, perm=(1, 0, 2)) for v in (x, g))
        return xt.reduce(xt.mul(xt.sub(x, mean), g), kind="sum", axes=(0, 1))

    with on_chip("sm_80"):
        check(scaled, *(filled((37, 6, 24), "float32", n) for n in range(2)), filled((6, 37, 1), "float32", 2))


@pytest.mark.parametrize(("chip", "dtype"), [("sm_90a", "float32"), ("gfx942", "float16"), ("gfx1100", "float32")])
def test_losses_of_sizes_that_no_parts_divide(chip, dtype):
    """All parts but the last are read as vectors, where they lie."""
    with on_chip(chip):
        check(lambda x, y: xt.reduce(xt.mul(xt.sub(x, y), x), kind="sum", axes=(0, 1)),
              *(filled((101, 1013), dtype, n, -0.3, 0.3) for n in range(2)), tolerance=8)
        check(lambda x: xt.reduce(x, kind="max", axes=(0,)), filled((20011, 7), dtype))


@pytest.mark.parametrize(("chip", "dtype", "m", "n", "k"), [
    ("sm_90a", "float32", 7, 7, 20003), ("sm_90a", "float16", 3, 64, 60011), ("gfx942", "float16", 7, 7, 20003),
    ("gfx1100", "float32", 64, 100, 4001)])
def test_sums_of_lengths_that_no_parts_divide(chip, dtype, m, n, k):
    """Gradients of small weights: several workgroups add up a tile."""
    def gradient(x, g):
        return xt.dot_general(x, g, lhs_contract=(0,), rhs_contract=(0,))
    x, g = filled((k, m), dtype, 0, -0.3, 0.3), filled((k, n), dtype, 1, -0.3, 0.3)
    with on_chip(chip):
        launches = [s for s in compiled(build(gradient, [x, g])).artifact.program.body if isinstance(s, Launch)]
        assert any(math.prod(s.grid) > 60 for s in launches)
        check(gradient, x, g, tolerance=8)


@pytest.mark.parametrize("chip", ["sm_80", "gfx942"])
def test_odd_rows_far_from_the_first(chip):
    """Of more than a million elements: none is read as a vector that no multiple of its bytes leads to."""
    with on_chip(chip):
        check(lambda x: xt.reduce(xt.slice(x, starts=(4096, 0), limits=(4099, 521), strides=(1, 1)), kind="sum",
                                  axes=(0,)), filled((4099, 521), "float32"))


def test_gradients_of_few_embeddings():
    """Sums of many rows for each of three places, one of which none names."""
    places = (filled((96, 1), "int64") % 2) * 2
    with on_chip("sm_80"):
        check(lambda x, i, u: xt.scatter_nd(x, i, u, reduction="add"), filled((3, 40), "float32"), places,
              filled((96, 40), "float32", 1))


@pytest.mark.parametrize(("chip", "tied"), [("sm_90a", True), ("gfx942", False)])
def test_gradients_of_embeddings_are_rounded_once(chip, tied):
    """Sums for each of 40 places begin with zeros, or with the gradient of a head that shares the weights."""
    def gradient(y, i, u):
        zeros = xt.broadcast(xt.constant(0.0, dtype="f32"), shape=(40, 24))
        sums = xt.convert(xt.scatter_nd(zeros, i, xt.convert(u, dtype="f32"), reduction="add"), dtype="f16")
        return xt.add(y, sums) if tied else sums

    with on_chip(chip):
        check(gradient, filled((40, 24), "float16"), filled((96, 1), "int64") % 37, filled((96, 24), "float16", 1))


@pytest.mark.parametrize(("chip", "rows", "keys", "heads", "causal"), [
    ("sm_90a", 70, 70, 2, True), ("sm_80", 33, 90, 4, False), ("sm_80", 2, 600, 2, False),
    ("gfx942", 40, 33, 2, False)])
def test_attention_with_sums(chip, rows, keys, heads, causal):
    """Masked, with a query that sees no key, where it is not causal; two queries see their keys in parts."""
    q, k, v = (filled(s, "float16", n) for n, s in enumerate(((2, 4, rows, 32), *[(2, heads, keys, 32)] * 2)))
    mask = filled((2, 1, rows, keys), "bool", 3)
    mask[:, :, 1] = False
    with on_chip(chip):
        check(lambda *given: xt.attention_with_sums(*given, causal=causal), q, k, v, *(() if causal else (mask,)))


def wide(x):
    return xt.convert(x, dtype="f32") if xt.TensorType.of(x).dtype in ("f16", "bf16") else x


def attention_gradients(causal, grad, q, k, v, *mask):
    """Of queries, keys and values, as training asks for them."""
    out, sums = xt.attention_with_sums(q, k, v, *mask, causal=causal)
    delta = xt.reduce(xt.mul(wide(grad), wide(out)), kind="sum", axes=(3,))
    given = (grad, q, k, v, sums, delta, *mask)
    made = xt.attention_query_gradient(*given, causal=causal), *xt.attention_key_gradients(*given, causal=causal)
    return tuple(xt.convert(x, dtype=xt.TensorType.of(q).dtype) for x in made)


@pytest.mark.parametrize(("chip", "kind", "rows", "keys", "heads", "features", "hides"), [
    ("sm_90a", "float16", 70, 70, 4, 64, "causal"), ("sm_90a", "bfloat16", 33, 63, 2, 80, "mask"),
    ("sm_90a", "float16", 20, 50, 4, 24, "added"), ("sm_80", "float16", 63, 70, 2, 64, "mask"),
    ("gfx942", "float16", 70, 40, 4, 24, "causal"), ("gfx1100", "bfloat16", 20, 33, 2, 32, "added")])
def test_attention_gradients(chip, kind, rows, keys, heads, features, hides):
    """Odd lengths, heads in groups, masks, a query that sees no key."""
    q, grad = (filled((2, 4, rows, features), kind, n, -1, 1) for n in range(2))
    k, v = (filled((2, heads, keys, features), kind, n, -1, 1) for n in (2, 3))
    masks = {"mask": [filled((2, 1, rows, keys), "bool", 4)], "added": [filled((2, 1, 1, keys), kind, 5)]}
    mask = masks.get(hides, [])
    if hides == "mask":
        mask[0][:, :, 1] = False
    with on_chip(chip):
        check(lambda *given: attention_gradients(hides == "causal", *given), grad, q, k, v, *mask)


def test_attention_with_sums_reads_through_transposes():
    def attention(*given):
        return xt.attention_with_sums(*(xt.transpose(v, perm=(0, 2, 1, 3)) for v in given))

    with on_chip("sm_90a"):
        check(attention, *(filled((2, 20, 3, 16), "float16", n) for n in range(3)))

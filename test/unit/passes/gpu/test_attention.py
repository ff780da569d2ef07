"""Attention as one kernel with one loop over the keys, on the interpreter of gpu-stage kernels, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from attention_kernels import RNG, build, normal, run, to_tiles

from xcc import symbolic
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.targets import gpu_attention
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.emit import emit_kernel
from xcc.targets.nvptx.pipeline import kernel_pipeline
from xcc.targets.nvptx.ptxas import find_ptxas


def hidden_row(*shape):
    mask = RNG.integers(0, 2, shape).astype(bool)
    mask[..., 1, :] = False
    return mask


H = np.float16
STATIC = {
    "one_step": ([normal(1, 2, 16, 32), normal(1, 2, 32, 32), normal(1, 2, 32, 32)], {}),
    "odd": ([normal(1, 2, 19, 40), normal(1, 2, 77, 40), normal(1, 2, 77, 24)], {}),
    "grouped_causal": ([normal(1, 4, 19, 16, dtype=H), normal(1, 2, 77, 16, dtype=H), normal(1, 2, 77, 16, dtype=H)],
                       {"causal": True, "causal_offset": (58,)}),
    "causal": ([normal(1, 1, 100, 16, dtype=H), normal(1, 1, 100, 16, dtype=H), normal(1, 1, 100, 16, dtype=H)],
               {"causal": True}),
    "boolean": ([normal(2, 2, 9, 32), normal(2, 2, 70, 32), normal(2, 2, 70, 32), hidden_row(2, 1, 9, 70)], {}),
    "additive": ([normal(2, 2, 9, 32), normal(2, 2, 70, 32), normal(2, 2, 70, 32), normal(9, 70)], {"softcap": 3.0}),
    "decode": ([normal(3, 2, 1, 64, dtype=H), normal(3, 2, 300, 64, dtype=H), normal(3, 2, 300, 64, dtype=H)], {}),
    "decode_masked": ([normal(2, 2, 1, 40, dtype=H), normal(2, 2, 77, 40, dtype=H), normal(2, 2, 77, 24, dtype=H),
                       RNG.integers(0, 2, (2, 1, 1, 77)).astype(bool)], {}),
    "decode_causal": ([normal(1, 2, 1, 32, dtype=H), normal(1, 2, 200, 32, dtype=H), normal(1, 2, 200, 32, dtype=H)],
                      {"causal": True, "causal_offset": (130,)}),
    "scale": ([3 * normal(1, 1, 30, 16, dtype=H), 3 * normal(1, 1, 80, 16, dtype=H), normal(1, 1, 80, 16, dtype=H)],
              {"scale": 3.0, "causal": True, "causal_offset": (20,)}),
    "wide": ([normal(1, 1, 16, 128, dtype=H), normal(1, 1, 130, 128, dtype=H), normal(1, 1, 130, 128, dtype=H)], {}),
}


@pytest.mark.parametrize("case", STATIC)
def test_static(case):
    arrays, attributes = STATIC[case]
    module = build(arrays, [None] * len(arrays), attributes)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {})
    assert text.count("vector.contract") == 2
    tolerance = 2e-3 if want.dtype == H else 1e-5
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)


WARPGROUPS = {
    "even": ([normal(1, 1, 128, 64, dtype=H), normal(1, 1, 256, 64, dtype=H), normal(1, 1, 256, 64, dtype=H)], {}),
    "causal": ([normal(1, 2, 130, 128, dtype=H), normal(1, 1, 300, 128, dtype=H), normal(1, 1, 300, 128, dtype=H)],
               {"causal": True, "causal_offset": (170,)}),
    "narrow": ([normal(1, 1, 100, 40, dtype=H), normal(1, 1, 150, 40, dtype=H), normal(1, 1, 150, 24, dtype=H)], {}),
    "masked": ([normal(1, 1, 70, 32, dtype=H), normal(1, 1, 77, 32, dtype=H), normal(1, 1, 77, 32, dtype=H),
                hidden_row(70, 77)], {}),
    "wide": ([normal(1, 1, 64, 256, dtype=H), normal(1, 1, 80, 256, dtype=H), normal(1, 1, 80, 256, dtype=H)], {}),
}


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("queries", [1, 70])
def test_bf16(chip, queries):
    shapes = [(2, 4, queries, 64), (2, 2, 90, 64), (2, 2, 90, 64)]
    arrays = [normal(*s).astype(ml_dtypes.bfloat16) for s in shapes]
    module = build(arrays, [None] * 3, {"causal": True, "causal_offset": (90 - queries,)})
    want = interpret(module, arrays)[0]
    out = np.zeros(want.shape, want.dtype)
    run(module, arrays, out, {}, chip)
    error = np.linalg.norm(out.astype(np.float64) - want.astype(np.float64)) / np.linalg.norm(want.astype(np.float64))
    assert error < 1e-2


@pytest.mark.parametrize("case", WARPGROUPS)
def test_warpgroups(case):
    """wgmma: queries, keys and values in shared memory, the weights in registers."""
    arrays, attributes = WARPGROUPS[case]
    module = build(arrays, [None] * len(arrays), attributes)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    _, code = run(module, arrays, out, {}, "sm_90a")
    assert code.count('"xtg.wgmma"') >= 2
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


TURNS = {
    "whole": ([normal(1, 1, 128, 64, dtype=H), normal(1, 1, 512, 64, dtype=H), normal(1, 1, 512, 64, dtype=H)], {}),
    "two_steps": ([normal(1, 1, 128, 80, dtype=H), normal(1, 1, 200, 80, dtype=H), normal(1, 1, 200, 80, dtype=H)], {}),
    "causal": ([normal(1, 1, 200, 96, dtype=H), normal(1, 1, 300, 96, dtype=H), normal(1, 1, 300, 96, dtype=H)],
               {"causal": True, "causal_offset": (100,)}),
    "masked": ([normal(1, 1, 70, 32, dtype=H), normal(1, 1, 288, 32, dtype=H), normal(1, 1, 288, 32, dtype=H),
                normal(70, 288, dtype=H)], {}),
}


@pytest.mark.parametrize("case", TURNS)
def test_warpgroups_take_turns(case, monkeypatch):
    """Two warpgroups of 64 rows each are at different places of a step."""
    monkeypatch.setattr(gpu_attention, "_warp_rows", lambda *_: (128, 128, 2))
    arrays, attributes = TURNS[case]
    module = build(arrays, [None] * len(arrays), attributes)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    _, code = run(module, arrays, out, {}, "sm_90a")
    assert "nvvm.barrier.arrive" in code
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


SPLIT = {
    "decode": ([normal(2, 2, 1, 64, dtype=H), normal(2, 2, 300, 64, dtype=H), normal(2, 2, 300, 64, dtype=H)], {}, 4),
    "more_parts_than_steps": ([normal(1, 2, 1, 32, dtype=H), normal(1, 2, 130, 32, dtype=H),
                               normal(1, 2, 130, 32, dtype=H)], {}, 5),
    "grouped": ([normal(1, 8, 1, 40, dtype=H), normal(1, 2, 277, 40, dtype=H), normal(1, 2, 277, 24, dtype=H)],
                {"scale": 2.0}, 3),
    "hidden": ([normal(1, 2, 9, 32, dtype=H), normal(1, 2, 200, 32, dtype=H), normal(1, 2, 200, 32, dtype=H),
                hidden_row(9, 200)], {}, 4),
    "causal": ([normal(1, 2, 70, 16, dtype=H), normal(1, 2, 190, 16, dtype=H), normal(1, 2, 190, 16, dtype=H)],
               {"causal": True, "causal_offset": (40,)}, 2),
    "f32": ([normal(1, 2, 9, 32), normal(1, 2, 170, 32), normal(1, 2, 170, 32)], {"softcap": 3.0}, 2),
}


CHIP_PAIRS = (("sm_80", "gfx942"), ("sm_90a", "gfx1100"))


@pytest.mark.parametrize(("case", "chip"), [(c, chip) for n, c in enumerate(SPLIT) for chip in CHIP_PAIRS[n % 2]])
def test_parts_of_keys(case, chip):
    """The keys of a row in parts, which a second launch merges."""
    arrays, attributes, splits = SPLIT[case]
    module = build(arrays, [None] * len(arrays), attributes)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {}, chip, splits=splits)
    assert text.count("scf.forall") == 2 and f"({splits}, " in text
    tolerance = 2e-3 if want.dtype == H else 1e-5
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batch, keys, parts", [(1, 1000, 4), (3, 129, 1), (1, 7, 4), (2, 300, 2)])
def test_parts_of_unknown_sizes(batch, keys, parts):
    """Batch and keys known at run time: fewer parts where the batch alone keeps the cores busy."""
    arrays = [normal(batch, 2, n, 32, dtype=H) for n in (1, keys, keys)]
    module = build(arrays, [("b", 2, 1, 32), ("b", 2, "m", 32), ("b", 2, "m", 32)], {})
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {"b": batch, "m": keys}, splits=4, busy=8)
    assert text.count("scf.forall") == 2
    assert parts == max(1, min(4, 8 // (2 * batch)))
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("heads, keys, split", [(32, 4096, True), (8, 32768, True), (264, 4096, False),
                                                (32, 64, False)])
def test_parts_by_cost(heads, keys, split):
    """Few heads with many keys are cut; heads that keep all cores busy, and few keys, are not."""
    arrays = [np.empty((1, heads, 1, 128), H), *[np.empty((1, heads, keys, 128), H)] * 2]
    module = build(arrays, [None] * 3, {})
    ctx = PassContext(chip=chips()["sm_90a"])
    with module.context:
        parse_pass("form-kernels").run(module, ctx)
        to_tiles(module, ctx)
        (f,) = module.body.operations
        schedule = Schedule.from_attr(f.attributes["xcc.config"])
    assert (schedule.gpu.splits > 1) == split
    assert ("xcc.scratch" in f.attributes) == split


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("features", [64, 128])
def test_registers(chip, features):
    """Scores, weights and results stay in registers at the sizes of common models."""
    arrays = [np.empty((1, 2, 512, features), H)] * 3
    module = build(arrays, [None] * 3, {"causal": True})
    ctx = PassContext(chip=chips()[chip])
    with module.context:
        parse_pass("form-kernels").run(module, ctx)
        to_tiles(module, ctx)
        kernel_pipeline().run(module, ctx)
        report = dict(emit_kernel(module, chips()[chip]).report)
    assert report["spills"] == 0 and report["stack"] == 0


@pytest.mark.parametrize("chip", ["gfx1100", "gfx1201"])
def test_a_mask_of_unknown_rows(chip):
    """What is read by elements counts once in the registers of a score, however often the kernel names it."""
    arrays = [*(normal(1, 2, n, 32, dtype=H) for n in (70, 50, 50)), normal(1, 1, 70, 50, dtype=H)]
    shapes = [(1, 2, "n", 32), (1, 2, "m", 32), (1, 2, "m", 32), (1, 1, "n", "m")]
    module = build(arrays, shapes, {})
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {"n": 70, "m": 50}, chip)
    assert "vector<64x32xf32>" in text
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


def test_dynamic_causal():
    """Lengths and the offset of the diagonal known at run time: the loop ends at the last key that a row sees."""
    arrays = [normal(1, 2, 70, 16), normal(1, 2, 90, 16), normal(1, 2, 90, 16)]
    shapes = [(1, 2, "n", 16), (1, 2, "m", 16), (1, 2, "m", 16)]
    module = build(arrays, shapes, {"causal": True, "causal_offset": (symbolic.parse("m - n"),), "scale": 0.25})
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {"n": 70, "m": 90})
    loop = next(line for line in text.splitlines() if "scf.for " in line)
    bound = loop.split(" to ")[1].split()[0]
    assert f"{bound} = arith.minsi" in text
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip, causal", [("sm_80", True), ("sm_90a", False)])
def test_gradient_of_unknown_sizes(chip, causal):
    """Queries and keys known at run time: one loop over the keys, to the last that a row sees."""
    rows = [normal(1, 2, 70, dtype=np.float32) for _ in range(2)]
    arrays = [*(normal(1, 2, n, 32, dtype=H) for n in (70, 70, 50, 50)), rows[0] + 6, rows[1]]
    shapes = [*((1, 2, n, 32) for n in "nnmm"), (1, 2, "n"), (1, 2, "n")]
    module = build(arrays, shapes, {"causal": causal}, attention=xt.attention_query_gradient)
    want = interpret(module, arrays)[0]
    out = np.full(want.shape, np.nan, want.dtype)
    text, _ = run(module, arrays, out, {"n": 70, "m": 50}, chip)
    assert text.count("vector.contract") == 3 and text.count("scf.for ") == 1
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("features", [64, 128])
@pytest.mark.parametrize("gradient", [xt.attention_query_gradient, xt.attention_key_gradients])
def test_registers_of_gradients(chip, features, gradient):
    """What a step computes and both sums stay in registers."""
    arrays = [np.empty((1, 2, 512, features), H)] * 4 + [np.empty((1, 2, 512), np.float32)] * 2
    module = build(arrays, [None] * 6, {"causal": True}, attention=gradient)
    ctx = PassContext(chip=chips()[chip])
    with module.context:
        parse_pass("form-kernels").run(module, ctx)
        to_tiles(module, ctx)
        kernel_pipeline().run(module, ctx)
        report = dict(emit_kernel(module, chips()[chip]).report)
    assert report["spills"] == 0 and report["stack"] == 0

"""What the passes of stage schedule decide for a CPU: left out one by one, and all, kernels give the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import test_depth_blocks
import test_past_caches
import test_tile

from xcc.diagnostics import UserError
from xcc.targets.cpu.pipeline import DECISIONS

PRODUCT = test_depth_blocks.product(75, 192, 97, "depth = 48 : i64, staged = true, shares = 2 : i64, "
                                    "prefetch = 8 : i64, parts = 2 : i64, stream = true", width=64)
STRIPS = test_depth_blocks.product(75, 192, 97, "strips = 2 : i64", width=64)
SOFTMAX = test_past_caches.static(test_tile.SOFTMAX, 100, 97).replace("attributes {", """attributes {xcc.config = {
    block = array<i64: 8, 0>, vector = array<i64: 1, 32>, order = array<i64: 0, 1>,
    reduce = [array<i64: 32>, array<i64: 32>], parallel = true, cpu = {park = 1 : i64, ahead = 96 : i64, stream = true,
    kept = [{op = 0 : i64, vector = array<i64: 1>, order = array<i64: 0>}]}}, """, 1)
DECODED = """
#w = affine_map<(p, k, n) -> (p, k, n)>
func.func private @k(%x: tensor<40x64xf32>, %w: tensor<3x64x32xi8>) -> tensor<40x70xf32> attributes {xt.kernel,
    xt.symbols = [], xt.arg_dims = [[40, 64], [3, 64, 32]], xt.result_dims = [[40, 70]],
    xcc.config = {block = array<i64: 15, 0>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
    reduce = [array<i64: 1>], parallel = true, cpu = {decoded = true}}} {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<3x64x32xf32>
  %d = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<3x64x32xi8>) outs(%s : tensor<3x64x32xf32>) {
  ^bb0(%a: i8, %o: f32):
    %f = arith.sitofp %a : i8 to f32
    linalg.yield %f : f32
  } -> tensor<3x64x32xf32>
  %e = tensor.empty() : tensor<40x70xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x70xf32>) -> tensor<40x70xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %d : tensor<40x64xf32>, tensor<3x64x32xf32>) outs(%f : tensor<40x70xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<40x70xf32>
  return %y : tensor<40x70xf32>
}
"""


def whole(*shape: int, most: int = 8) -> np.ndarray:
    """Numbers whose products and sums are exact in f32."""
    return np.random.default_rng(0).integers(-most, most, shape).astype(np.float32)


def panels(w: np.ndarray) -> np.ndarray:
    """`w` in panels of 32 columns."""
    k, n = w.shape
    padded = np.pad(w, ((0, 0), (0, -n % 32)))
    return np.ascontiguousarray(padded.reshape(k, -1, 32).transpose(1, 0, 2))


def check_product(text: str) -> None:
    x, w, out = whole(75, 192), whole(192, 97), test_tile.fresh(75, 97)
    test_tile.call(test_tile.load(text), "k", x, panels(w), out)
    np.testing.assert_array_equal(out, np.maximum(x @ w, 0))


def check_softmax(text: str) -> None:
    x, out = test_tile.normal(100, 97) * 5, test_tile.fresh(100, 97)
    test_tile.call(test_tile.load(text), "k", x, out)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)


def check_decoded(text: str) -> None:
    x, w, out = whole(40, 64), whole(64, 70, most=128).astype(np.int8), test_tile.fresh(40, 70)
    test_tile.call(test_tile.load(text), "k", x, panels(w), out)
    np.testing.assert_array_equal(out, x @ w.astype(np.float32))


CASES: dict[str, tuple[str, Callable[[str], None], str]] = {
    "product": (PRODUCT, check_product, "block-depth deal-rows pack-rows prefetch-panels non-temporal-stores "
                                        "peel-tails"),
    "strips": (STRIPS, check_product, "epilogue-strips peel-tails"),
    "softmax": (SOFTMAX, check_softmax, "keep-values park-values prefetch-inputs non-temporal-stores peel-tails"),
    "decoded": (DECODED, check_decoded, "decode-panels peel-tails"),
}


@pytest.mark.parametrize("case, dropped", [(case, name) for case, (*_, names) in CASES.items()
                                           for name in (*names.split(), "all")])
def test_left_out(case: str, dropped: str) -> None:
    text, check, _ = CASES[case]
    made = test_tile.tiled(text)
    plain = test_tile.tiled(text, [name for name in DECISIONS if dropped not in (name, "all")])
    assert plain != made
    check(plain)
    check(made)


@pytest.mark.parametrize("case, wrong, what", [
    ("product", "xcc.shares = 3 : i64", "shares 3"),
    ("product", "xcc.depth = 50 : i64", "depth 50"),
    ("product", "xcc.depth = 48 : i64, xcc.strips = 5 : i64", "strips"),
    ("softmax", "xcc.depth = 32 : i64", "depth 32"),
    ("softmax", "xcc.packed", "packed rows"),
    ("product", 'xcc.prefetch = "far"', "xcc.prefetch"),
    ("product", "xcc.kept = {vector = array<i64: 1>}", "xcc.kept"),
    ("product", "xcc.kept = {vector = array<i64: 1>, order = array<i64: 0>}", "one entry a dim"),
])
def test_what_cannot_be_obeyed(case: str, wrong: str, what: str) -> None:
    kinds = {"product": '["parallel", "parallel", "reduction"]', "softmax": '["parallel", "reduction"]'}[case]
    text = CASES[case][0].replace(f"iterator_types = {kinds}", f"iterator_types = {kinds}, {wrong}", 1)
    with pytest.raises(UserError, match=what):
        test_tile.tiled(text, ["peel-tails"])

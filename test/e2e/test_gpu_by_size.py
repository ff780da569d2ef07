"""Products whose rows are known at run time have two schedules, of which one is launched, in the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.gpu_module import kernel_launches
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.pipeline import kernel_pipeline

K, N = 32, 128
PROGRAM = f"""
func.func private @product(%x: tensor<?x{K}xf16>, %w: tensor<{K}x{N}xf16>, %d0: index, %d1: index) -> tensor<?x{N}xf32>
    attributes {{xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0*d1", {K}], [{K}, {N}]],
                xt.result_dims = [["d0*d1", {N}]]}} {{
  %zero = arith.constant 0.0 : f32
  %m = arith.muli %d0, %d1 : index
  %e = tensor.empty(%m) : tensor<?x{N}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<?x{K}xf16>, tensor<{K}x{N}xf16>) outs(%f : tensor<?x{N}xf32>) {{
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  }} -> tensor<?x{N}xf32>
  return %y : tensor<?x{N}xf32>
}}
"""


@pytest.mark.parametrize("batch, seq", [(1, 5), (3, 31), (2, 300)])
def test_one_of_two_functions_is_launched(batch, seq):
    """On a chip of four cores 256 rows are many."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(PROGRAM)
        ctx = PassContext(chip=replace(chips()["sm_80"], cores=4))
        for name in ("configure{target=nvptx}", "tile"):
            parse_pass(name).run(module, ctx)
        kernel_pipeline().upto("gpu").run(module, ctx)
        launches = kernel_launches(module)
        sizes = {x.entry: symbolic.evaluate(x.grid[0], {"d0": batch, "d1": seq}) for x in launches}
        assert list(sizes) == ["product", "product_few"]
        launched = [x for x in launches if sizes[x.entry]]
        assert [x.entry for x in launched] == ["product" if batch * seq >= 256 else "product_few"]
        rng = np.random.default_rng(0)
        x, w = (rng.integers(-3, 4, s).astype(np.float16) for s in ((batch * seq, K), (K, N)))
        out = np.full((batch * seq, N), np.nan, np.float32)
        for launch in launched:
            run_kernel(module, launch.entry, (sizes[launch.entry], 1, 1), launch.block, [x, w, out], [batch, seq],
                       dynamic_shared=launch.shared_bytes)
        np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))

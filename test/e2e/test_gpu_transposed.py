"""Transposes of many tiles, which are longer along what is read, in the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.amdgcn import pipeline as amdgcn
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.gpu_module import kernel_launches
from xcc.targets.nvptx import pipeline as nvptx
from xcc.targets.nvptx.chip import chips


@pytest.mark.parametrize(("name", "dtype", "block"), [("f16", np.float16, "128, 64"), ("f32", np.float32, "64, 32")])
@pytest.mark.parametrize("target", ["nvptx", "amdgcn"])
def test_long_tiles(target, name, dtype, block):
    """On a chip of one core 64 thousand elements are many."""
    rows, columns = 259, 301
    chip = replace(chips()["sm_80"] if target == "nvptx" else CHIPS["gfx942"], cores=1)
    text = f"""func.func private @flip(%x: tensor<{rows}x{columns}x{name}>) -> tensor<{columns}x{rows}x{name}>
        attributes {{xt.kernel, xt.symbols = []}} {{
      %0 = "xt.transpose"(%x) {{perm = [1, 0]}} : (tensor<{rows}x{columns}x{name}>) -> tensor<{columns}x{rows}x{name}>
      return %0 : tensor<{columns}x{rows}x{name}>
    }}"""
    x = (np.arange(rows * columns) % 2039).reshape(rows, columns).astype(dtype)
    out = np.full((columns, rows), np.nan, dtype)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        ctx = PassContext(chip=chip)
        for step in ("xt-to-linalg", f"configure{{target={target} tuned=false}}", "tile"):
            parse_pass(step).run(module, ctx)
        assert f"block = array<i64: {block}>" in str(module)
        pipeline = nvptx.kernel_pipeline() if target == "nvptx" else amdgcn.kernel_pipeline(chip)
        pipeline.upto("gpu").run(module, ctx)
        (launch,) = kernel_launches(module)
        run_kernel(module, launch.entry, launch.grid, launch.block, [x, out], dynamic_shared=launch.shared_bytes)
    np.testing.assert_array_equal(out, x.T)

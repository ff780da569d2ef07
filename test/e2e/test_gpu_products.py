"""Products with epilogues under hand-written schedules, run by the interpreter of gpu-stage kernels, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from schedules import changed

from xcc import symbolic
from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.targets.gpu_module import kernel_functions, kernel_launches, scratch_bytes
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.pipeline import kernel_pipeline

# relu(x w^T + bias) + residual; w is (n, k) or (k, n)
PROGRAM = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> ({b_at})>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>
#v = affine_map<(m, n) -> (n)>
func.func private @product(%x: tensor<{m}x{k}x{t}>, %w: tensor<{w}x{t}>, %bias: tensor<{n}xf16>,
                           %rest: tensor<{m}x{n}xf16>) -> tensor<{m}x{n}xf16>
    attributes {{xt.kernel, xt.symbols = [], xt.arg_dims = [[{m}, {k}], [{w_dims}], [{n}], [{m}, {n}]],
                xt.result_dims = [[{m}, {n}]]}} {{
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %y = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{m}x{k}x{t}>, tensor<{w}x{t}>) outs(%f : tensor<{m}x{n}xf32>) {{
  ^bb0(%p: {t}, %q: {t}, %o: f32):
    %pw = arith.extf %p : {t} to f32
    %qw = arith.extf %q : {t} to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  }} -> tensor<{m}x{n}xf32>
  %g = tensor.empty() : tensor<{m}x{n}xf16>
  %z = linalg.generic {{indexing_maps = [#i, #v, #i, #i], iterator_types = ["parallel", "parallel"]}}
      ins(%y, %bias, %rest : tensor<{m}x{n}xf32>, tensor<{n}xf16>, tensor<{m}x{n}xf16>)
      outs(%g : tensor<{m}x{n}xf16>) {{
  ^bb0(%p: f32, %q: f16, %r: f16, %o: f16):
    %h = arith.truncf %p : f32 to f16
    %s = arith.addf %h, %q : f16
    %t = arith.maximumf %s, %none : f16
    %u = arith.addf %t, %r : f16
    linalg.yield %u : f16
  }} -> tensor<{m}x{n}xf16>
  return %z : tensor<{m}x{n}xf16>
}}
"""


def compiled(sizes, turned, element="f16", **schedule):
    """The module at stage gpu with this schedule, in the context in force."""
    m, n, k = sizes
    w = (n, k) if turned else (k, n)
    module = ir.Module.parse(PROGRAM.format(m=m, n=n, k=k, b_at="n, k" if turned else "k, n", w="x".join(map(str, w)),
                                            w_dims=", ".join(map(str, w)), t=element))
    ctx = PassContext(chip=chips()["sm_90a"])
    parse_pass("configure{target=nvptx}").run(module, ctx)
    f = module.body.operations[0]
    tile = schedule.pop("tile")
    depth = schedule.pop("depth")
    f.attributes["xcc.config"] = changed(Schedule.from_attr(f.attributes["xcc.config"]), block=tile,
                                         vector=schedule.pop("vector", tile), reduce=((depth,),), **schedule).to_attr()
    for name in ("stream-k", "tile"):
        parse_pass(name).run(module, ctx)
    kernel_pipeline().upto("gpu").run(module, ctx)
    return module


def run(module, sizes, turned, dtype=np.float16):
    m, n, k = sizes
    rng = np.random.default_rng(3)
    x, w, bias, rest = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (k, n), (n,), (m, n)))
    out = np.full((m, n), np.nan, np.float16)
    scratch = [np.full(size // 4, np.nan, np.float32) for size in scratch_bytes(kernel_functions(module)[0])]
    held = np.ascontiguousarray(w.T if turned else w).astype(dtype)
    for function, launch in zip(kernel_functions(module), kernel_launches(module), strict=True):
        shapes = [ir.MemRefType(a.type).shape for a in function.regions[0].blocks[0].arguments][4 + 1:]
        views = [s.reshape(list(d)) for s, d in zip(scratch, shapes, strict=True)]
        run_kernel(module, launch.entry, (symbolic.evaluate(launch.grid[0], {}), 1, 1), launch.block,
                   [x.astype(dtype), held, bias, rest, out, *views], [], dynamic_shared=launch.shared_bytes)
    want = x.astype(np.float64) @ w.astype(np.float64) + bias
    np.testing.assert_array_equal(out, (np.maximum(want, 0) + rest).astype(np.float16))


@pytest.mark.parametrize("persistent", [0, 3])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("sizes, tile, threads, stages", [
    ((128, 256, 512), (64, 128), 128, 4),
    ((200, 136, 512), (64, 64), 128, 4),        # masked edges
    ((256, 320, 256), (128, 64), 256, 4),       # as many steps as slots
    ((384, 128, 320), (128, 128), 256, 5),
], ids=lambda v: "x".join(map(str, v)) if isinstance(v, tuple) else str(v))
def test_epilogues(sizes, tile, threads, stages, turned, persistent):
    """Bias, relu and residual of each tile; with `persistent` workgroups, which compute one tile after the other."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, turned, tile=tile, depth=64, threads=threads, stages=stages, warpgroup=True,
                          persistent=persistent)
        assert '"xtg.wgmma"' in str(module)
        if persistent:
            assert [symbolic.evaluate(x.grid[0], {}) for x in kernel_launches(module)] == [persistent]
        run(module, sizes, turned)


@pytest.mark.parametrize("persistent", [0, 3])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("columns", [192, 200])     # whole tiles, masked edges
def test_columns_that_are_no_power_of_two(columns, turned, persistent):
    """Lanes of the vector are off, and the instruction has as many columns as the tile."""
    sizes = 100, columns, 320
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, turned, tile=(64, 96), vector=(64, 128), depth=64, threads=128, stages=4,
                          warpgroup=True, persistent=persistent)
        assert "n = 96 : i64" in str(module) and "n = 128 : i64" not in str(module)
        run(module, sizes, turned)


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("columns", [129, 203, 134, 260])     # elements, pairs and words of four that rows begin with
def test_rows_that_begin_within_words(columns, turned):
    """Words of 16 bytes are stored, made of what two lanes hold; what is left at the ends of rows alone."""
    sizes = 100, columns, 128
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, turned, tile=(64, 128), depth=64, threads=128, stages=3, warpgroup=True, persistent=3)
        words = [op for op in str(module).splitlines() if "vector.store" in op and "vector<8xf16>" in op]
        assert words and all("alignment = 16" in op for op in words)
        run(module, sizes, turned)


def test_short_rows_that_begin_within_words():
    """Rows of a few words have ends above all: they are stored as they lie in registers."""
    sizes = 100, 49, 128
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, True, tile=(64, 64), depth=64, threads=128, stages=3, warpgroup=True, persistent=3)
        assert not any("vector.store" in op and "vector<8xf16>" in op and "workgroup" not in op
                       for op in str(module).splitlines())
        run(module, sizes, True)


@pytest.mark.parametrize("persistent", [0, 3])
def test_residual_is_loaded_a_share_a_step(persistent):
    """The last steps of a product ask for what its epilogue reads, each for as much."""
    sizes = 192, 256, 1024
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, True, tile=(64, 128), depth=64, threads=128, stages=4, warpgroup=True,
                          persistent=persistent)
        before = str(module).split('"xtg.wgmma"')[-9:-1]      # the code before each of the last steps' products
        counts = [part.count("vector.load %arg3") for part in before]
        assert min(counts) > 0 and max(counts) - min(counts) <= 1, counts
        run(module, sizes, True)


@pytest.mark.parametrize("warpgroup", [True, False])
@pytest.mark.parametrize("sizes, streamed", [
    ((192, 192, 512), (3, 4)),      # nine tiles: six whole, three dealt out
    ((128, 128, 320), (4, 7)),      # none whole; runs of 3 of 20 steps
    ((150, 100, 256), (2, 5)),      # masked edges, a worker without work
], ids=str)
def test_streamed(sizes, streamed, warpgroup):
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, True, tile=(64, 64), depth=64, threads=128, stages=4, warpgroup=warpgroup,
                          streamed=streamed)
        assert len(kernel_launches(module)) == 2
        run(module, sizes, True)


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("element, dtype", [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)])
def test_f8(element, dtype, turned):
    """Operands of 8 bits go to the instruction as they are."""
    sizes = 100, 72, 128
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = compiled(sizes, turned, element, tile=(64, 64), depth=64, threads=128, stages=3)
        assert '"xtg.mma"' in str(module)
        run(module, sizes, turned, dtype)

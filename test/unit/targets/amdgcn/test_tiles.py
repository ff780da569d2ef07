"""Tiles of AMD contractions: what they are predicted to need, against assembled code; share of matrix instructions."""

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.emit import emit_kernel
from xcc.targets.amdgcn.pipeline import kernel_pipeline
from xcc.targets.amdgcn.tiles import candidates, matrix_tile, needed_registers, predicted_registers, wave_tile
from xcc.targets.gpu_contraction import MatrixTile
from xcc.targets.gpu_module import kernel_launches
from xcc.targets.gpu_operands import Loaded, loaded

SIDE = 512


def product(t: MatrixTile, kind: str, side: int = SIDE) -> str:
    """A tile program: A (m x k) times B (n x k) transposed."""
    m, n, k = t.m, t.n, t.k
    a, b, c = (f"vector<{x}x{y}x{e}>" for x, y, e in ((m, k, kind), (n, k, kind), (m, n, "f32")))
    stages = f", stages = {t.stages} : i64" if t.stages else ""
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>"
    return f"""
      func.func @product(%a: memref<{side}x{side}x{kind}>, %b: memref<{side}x{side}x{kind}>,
                         %o: memref<{side}x{side}xf32>)
          attributes {{xt.kernel, xcc.config = {{gpu = {{threads = {t.threads} : i64{stages}}}}}}} {{
        %c0 = arith.constant 0 : index
        %step = arith.constant {k} : index
        %all = arith.constant {side} : index
        %z = arith.constant 0.0 : {kind}
        scf.forall (%i, %j) = (0, 0) to ({side}, {side}) step ({m}, {n}) {{
          %init = arith.constant dense<0.0> : {c}
          %r = scf.for %k = %c0 to %all step %step iter_args(%acc = %init) -> ({c}) {{
            %x = vector.transfer_read %a[%i, %k], %z {{in_bounds = [true, true]}} : memref<{side}x{side}x{kind}>, {a}
            %y = vector.transfer_read %b[%j, %k], %z {{in_bounds = [true, true]}} : memref<{side}x{side}x{kind}>, {b}
            %s = vector.contract {{indexing_maps = [{maps}], kind = #vector.kind<add>,
                                  iterator_types = ["parallel", "parallel", "reduction"]}} %x, %y, %acc
              : {a}, {b} into {c}
            scf.yield %s : {c}
          }}
          vector.transfer_write %r, %o[%i, %j] {{in_bounds = [true, true]}} : {c}, memref<{side}x{side}xf32>
        }}
        return
      }}"""


@pytest.mark.parametrize(("chip", "kind", "m", "n", "k", "threads"), [
    ("gfx942", "f16", 256, 128, 32, 256), ("gfx942", "f32", 128, 128, 16, 256), ("gfx942", "f16", 64, 64, 64, 256),
    ("gfx1100", "f16", 128, 128, 32, 128), ("gfx1100", "f16", 64, 64, 64, 256), ("gfx1100", "f32", 64, 64, 16, 128),
])
def test_registers_are_as_predicted(chip, kind, m, n, k, threads):
    t, chip = MatrixTile(m, n, k, threads, 2), CHIPS[chip]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(product(t, kind))
        kernel_pipeline(chip).run(module, PassContext(chip=chip))
        report = dict(emit_kernel(module, chip).report)
    size, simt = 2 if kind == "f16" else 4, kind == "f32" and chip.warp == 32
    predicted = predicted_registers(t, size, simt, chip)
    assert not report["scratch_bytes"]
    assert 0.7 * predicted <= report["vgprs"] <= 1.2 * predicted
    if (m, n) == (256, 128):
        assert report["matrix_share"] >= 0.4


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda c: c.name)
def test_tiles_fit_the_chip(chip):
    for size, simt in ((1, False), (2, False), (4, False), (4, True)):
        found = candidates(size, simt, chip)
        assert found and any(t.m * t.n >= 128 * 64 for t in found)
        for t in found:
            assert needed_registers(t, size, simt, chip) <= 256
            assert t.shared_bytes(size) <= chip.shared_bytes
    large = matrix_tile(4096, 4096, 4096, 1, 2, False, chip, 0)
    assert large.m * large.n >= 128 * 128
    small = matrix_tile(16, 1000, 512, 1, 2, False, chip, 0)
    assert small.m == 16


def test_the_larger_side_is_split_among_waves():
    assert wave_tile(MatrixTile(256, 128, 32, 256, 2), 16, CHIPS["gfx942"]) == (64, 128)
    assert wave_tile(MatrixTile(128, 128, 32, 128, 2), 16, CHIPS["gfx1100"]) == (64, 64)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 64), (16, 64, 32)])
def test_sums_of_many_steps_are_loops(m, n, k):
    """FMAs along a long k in one step: a loop that is not unrolled, with offsets of LDS from its counter."""
    chip, t = CHIPS["gfx1100"], MatrixTile(m, n, k, 64, 0)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    out = np.full((64, 64), np.nan, np.float32)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(product(t, "f32", 64))
        kernel_pipeline(chip).upto("gpu").run(module, PassContext(chip=chip))
        assert "llvm.loop_annotation" in str(module)
        launch, = kernel_launches(module)
        run_kernel(module, launch.entry, (64 // m * 64 // n, 1, 1), launch.block, [a, b, out], [], Options(warp=32),
                   launch.shared_bytes)
    np.testing.assert_allclose(out, a @ b.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("chip", "steps", "inside"), [("gfx942", 2, 0), ("gfx1100", 3, 0), ("gfx1100", 5, 4),
                                                       ("gfx942", 6, 4), ("gfx942", 18, 18)])
def test_the_last_steps_stand_behind_a_loop_of_an_even_number(chip, steps, inside):
    """The loop is unrolled by its two slots; the last step behind it loads nothing. Few steps need no loop. The first
    row of tiles is run."""
    chip, t, side = CHIPS[chip], MatrixTile(32, 32, 32, 2 * CHIPS[chip].warp, 2), 32 * steps
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((side, side)).astype(np.float16) for _ in range(2))
    out = np.full((side, side), np.nan, np.float32)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(product(t, "f16", side))
        kernel_pipeline(chip).upto("gpu").run(module, PassContext(chip=chip))
        text = str(module)
        assert ("scf.for" in text) == ("count = 2" in text) == (inside > 0)
        assert (f" to %c{32 * inside} step %c32" in text) == (inside > 0)
        behind = text.split("scf.yield")[-1]
        apart = behind.split("gpu.return")[0].count("amdgpu.lds_barrier")
        assert apart == steps - inside
        assert ("amdgpu.mfma" in behind or "amdgpu.wmma" in behind) == (apart > 0)
        launch, = kernel_launches(module)
        run_kernel(module, launch.entry, (steps, 1, 1), launch.block, [a, b, out], [],
                   Options(warp=chip.warp), launch.shared_bytes)
    np.testing.assert_allclose(out[:32], a[:32].astype(np.float32) @ b.T.astype(np.float32), rtol=1e-3, atol=1e-3)
    assert np.isnan(out[32:]).all()


def test_what_is_loaded_counts_not_what_is_multiplied():
    """A left operand of f32 that becomes f16, and one whose odd rows are read by elements: both need smaller tiles."""
    chip, f16 = CHIPS["gfx1201"], Loaded.of(2)
    wide, alone = Loaded(4, 4, 0.25), Loaded(2, 4, 1.0)
    t = MatrixTile(128, 128, 64, 128, 2)
    assert needed_registers(t, 2, False, chip) <= 256
    for operands in ((wide, f16), (f16, alone)):
        assert needed_registers(t, 2, False, chip, operands) > 256
        chosen = matrix_tile(128, 3072, 768, 1, 2, False, chip, 0, operands)
        assert needed_registers(chosen, 2, False, chip, operands) <= 256


CONVERTED = """
func.func @k(%a: tensor<64x96xf32>, %b: tensor<96x33xf16>) -> tensor<64x33xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 96], [96, 33]], xt.result_dims = [[64, 33]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x96xf32>)
       outs(%e : tensor<64x96xf16>) {
  ^bb0(%x: f32, %o: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<64x96xf16>
  %e2 = tensor.empty() : tensor<64x33xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x33xf32>) -> tensor<64x33xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                        affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%h, %b : tensor<64x96xf16>, tensor<96x33xf16>) outs(%init : tensor<64x33xf32>) {
  ^bb0(%x: f16, %w: f16, %s: f32):
    %xf = arith.extf %x : f16 to f32
    %wf = arith.extf %w : f16 to f32
    %p = arith.mulf %xf, %wf : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x33xf32>
  return %r : tensor<64x33xf32>
}"""


def test_operands_are_read_off_the_kernel():
    with ir.Context():
        module = ir.Module.parse(CONVERTED)
        kernel = read(module.body.operations[0])
        op = next(o for o in kernel.ops if o.is_reduction)
        left, right = (loaded(op, v, 2) for v in product_operands(op))
    assert left == Loaded(4, 4, 0.25)       # f32 in memory, by four
    assert right == Loaded(2, 4, 1.0)       # rows of 33: each alone, in a register of its own


WINDOWS = """
func.func @k(%a: tensor<8x40xCxf16>, %w: tensor<3xCx64xf16>) -> tensor<8x40x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[8, 40, C], [3, C, 64]], xt.result_dims = [[8, 40, 64]]} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c39 = arith.constant 39 : index
  %c40 = arith.constant 40 : index
  %e = tensor.empty() : tensor<8x42xCxf16>
  %p = linalg.generic {indexing_maps = [affine_map<(b, t, c) -> (b, t, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<8x42xCxf16>) {
  ^bb0(%o: f16):
    %b = linalg.index 0 : index
    %t = linalg.index 1 : index
    %c = linalg.index 2 : index
    %at = arith.subi %t, %c1 : index
    %on = arith.cmpi ult, %at, %c40 : index
    %low = arith.minsi %at, %c39 : index
    %in = arith.maxsi %low, %c0 : index
    %x = tensor.extract %a[%b, %in, %c] : tensor<8x40xCxf16>
    %y = arith.select %on, %x, %none : f16
    linalg.yield %y : f16
  } -> tensor<8x42xCxf16>
  %e2 = tensor.empty() : tensor<8x40x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x40x64xf32>) -> tensor<8x40x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, t, n, s, c) -> (b, t + s, c)>,
                                        affine_map<(b, t, n, s, c) -> (s, c, n)>,
                                        affine_map<(b, t, n, s, c) -> (b, t, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
       ins(%p, %w : tensor<8x42xCxf16>, tensor<3xCx64xf16>) outs(%init : tensor<8x40x64xf32>) {
  ^bb0(%x: f16, %v: f16, %s: f32):
    %xf = arith.extf %x : f16 to f32
    %vf = arith.extf %v : f16 to f32
    %m = arith.mulf %xf, %vf : f32
    %q = arith.addf %s, %m : f32
    linalg.yield %q : f32
  } -> tensor<8x40x64xf32>
  return %r : tensor<8x40x64xf32>
}"""


@pytest.mark.parametrize(("channels", "expected"), [(128, Loaded.of(2)), (130, Loaded(2, 2, 0.5)),
                                                    (129, Loaded(2, 4, 1.0))])
def test_what_is_gathered_lies_together_as_its_rows_do(channels, expected):
    """A padded convolution's windows, read by tensor.extract: elements of odd rows are alone, a register each."""
    with ir.Context():
        module = ir.Module.parse(WINDOWS.replace("xC", f"x{channels}").replace(" C]", f" {channels}]").replace(
            " C,", f" {channels},"))
        kernel = read(module.body.operations[0])
        op = next(o for o in kernel.ops if o.is_reduction)
        left, right = (loaded(op, v, 2) for v in product_operands(op))
    assert left == expected
    assert right == Loaded.of(2)

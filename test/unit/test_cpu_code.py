"""The shape of the code for every chip of the table: register use, instructions, no library calls."""

import re

import cpu_kernels
import pytest
import test_cpu_tiles as tiles
import test_elementary as elementary

from xcc.targets.cpu.chip import CHIPS

FULL_TILE = """
func.func @tile(%a: memref<14x64xf32>, %b: memref<64x32xf32>, %out: memref<14x32xf32>) attributes {xt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<14x32xf32>
  %acc = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %zero) -> (vector<14x32xf32>) {
    %x = vector.transfer_read %a[%c0, %k], %pad {in_bounds = [true, true]} : memref<14x64xf32>, vector<14x1xf32>
    %y = vector.transfer_read %b[%k, %c0], %pad {in_bounds = [true, true]} : memref<64x32xf32>, vector<1x32xf32>
    %t = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                           affine_map<(m, n, k) -> (m, n)>],
                          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
         %x, %y, %s : vector<14x1xf32>, vector<1x32xf32> into vector<14x32xf32>
    scf.yield %t : vector<14x32xf32>
  }
  vector.transfer_write %acc, %out[%c0, %c0] {in_bounds = [true, true]} : vector<14x32xf32>, memref<14x32xf32>
  return
}
"""


def calls(text):
    found = {line.split()[-1].lstrip("_") for line in text.splitlines() if re.match(r"\s+(call\w*|bl)\s", line)}
    return {name.removesuffix("@PLT") for name in found}


def test_the_accumulators_of_a_tile_stay_in_registers():
    """28 multiply-adds, 14 broadcasts, two loads of the right operand and nothing on the stack."""
    text = cpu_kernels.assembly(FULL_TILE, CHIPS["x86-64-v4"])
    labels = {m[1]: i for i, m in enumerate(re.match(r"(\.L\w+):", line) for line in text.splitlines()) if m}
    lines = text.splitlines()
    jump, target = next((i, m[1]) for i, m in enumerate(re.search(r"\tj\w+\s+(\.L\w+)", line) for line in lines) if m)
    loop = lines[labels[target]:jump]
    fmas = sum("vfmadd" in line for line in loop)
    assert fmas >= 28 and fmas % 28 == 0
    assert not any("rsp" in line or "rbp" in line for line in loop)
    assert sum("zmm" in line for line in loop) <= fmas * (28 + 14 + 2) // 28


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_needs_nothing_but_the_thread_pool(chip):
    text = tiles.POINTWISE + tiles.ROW_SUM + tiles.MATMUL + tiles.TRANSPOSE + tiles.GATHER
    text += elementary.kernel("exp", 1) + elementary.kernel("powf", 2)
    assert calls(cpu_kernels.assembly(text, CHIPS[chip])) <= {"xcc_parallel"}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("elem", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_small_floats_need_no_library(chip, elem):
    text = elementary.kernel("exp", 1).replace("xf32", f"x{elem}").replace(": f32", f": {elem}")
    assert calls(cpu_kernels.assembly(text, CHIPS[chip])) == set()

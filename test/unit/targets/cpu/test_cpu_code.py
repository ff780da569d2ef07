"""The shape of the code for every chip of the table: register use, instructions, no library calls."""

import re

import cpu_kernels
import numpy as np
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


TRANSPOSED = """
func.func @transposed(%a: memref<?x32xf32>, %out: memref<32x100xf32>, %n: index) attributes {xt.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %rows = vector.create_mask %n, %c8 : vector<8x8xi1>
  %x = vector.transfer_read %a[%c0, %c0], %pad, %rows {in_bounds = [true, true]} : memref<?x32xf32>, vector<8x8xf32>
  %y = vector.transpose %x, [1, 0] : vector<8x8xf32> to vector<8x8xf32>
  %columns = vector.create_mask %c8, %n : vector<8x8xi1>
  vector.transfer_write %y, %out[%c0, %c0], %columns {in_bounds = [true, true]} : vector<8x8xf32>, memref<32x100xf32>
  return
}
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("elem", ["f16", "bf16"])
def test_transposed_small_floats_need_no_library(chip, elem):
    text = TRANSPOSED.replace("xf32", f"x{elem}").replace(": f32", f": {elem}")
    assert calls(cpu_kernels.assembly(text, CHIPS[chip])) == set()


def grouped_tile(elem, total, group):
    """A 14 x 32 tile over groups of `group` elements; the left operand of bytes is unsigned."""
    zero = "0.0" if elem == "bf16" else "0"
    signs = "" if elem == "bf16" else ", xcc.unsigned = array<i64: 0>"
    return f"""
func.func @tile(%a: memref<14x256x{elem}>, %b: memref<64x32x{group}x{elem}>, %out: memref<14x32x{total}>)
    attributes {{xt.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %group = arith.constant {group} : index
  %pad = arith.constant {zero} : {elem}
  %zero = arith.constant dense<{zero}> : vector<14x32x{total}>
  %acc = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %zero) -> (vector<14x32x{total}>) {{
    %at = arith.muli %k, %group : index
    %x = vector.transfer_read %a[%c0, %at], %pad {{in_bounds = [true, true]}}
        : memref<14x256x{elem}>, vector<14x{group}x{elem}>
    %y = vector.transfer_read %b[%k, %c0, %c0], %pad {{in_bounds = [true, true]}}
        : memref<64x32x{group}x{elem}>, vector<32x{group}x{elem}>
    %t = vector.contract {{indexing_maps = [affine_map<(m, n, q) -> (m, q)>, affine_map<(m, n, q) -> (n, q)>,
                                            affine_map<(m, n, q) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>{signs}}}
         %x, %y, %s : vector<14x{group}x{elem}>, vector<32x{group}x{elem}> into vector<14x32x{total}>
    scf.yield %t : vector<14x32x{total}>
  }}
  vector.transfer_write %acc, %out[%c0, %c0] {{in_bounds = [true, true]}} : vector<14x32x{total}>, memref<14x32x{total}>
  return
}}
"""


def inner_loop(text):
    """The lines of the one loop."""
    lines = text.splitlines()
    labels = {m[1]: i for i, m in enumerate(re.match(r"(\.L\w+):", line) for line in lines) if m}
    jump, target = next((i, m[1]) for i, m in enumerate(re.search(r"\t(?:j|b\.)\w+\s+(\.L\w+)", line)
                                                        for line in lines) if m)
    return lines[labels[target]:jump]


@pytest.mark.parametrize("elem, total, group, name", [("i8", "i32", 4, "vpdpbusd"), ("bf16", "f32", 2, "vdpbf16ps")])
def test_dot_products_of_a_tile_stay_in_registers(elem, total, group, name):
    """28 dot products, 14 broadcasts of a group, two loads, nothing on the stack."""
    loop = inner_loop(cpu_kernels.assembly(grouped_tile(elem, total, group), CHIPS["znver4"]))
    dots = sum(name in line for line in loop)
    assert dots >= 28 and dots % 28 == 0
    assert sum("vpbroadcastd" in line or "vbroadcastss" in line for line in loop) == dots // 2
    assert not any("rsp" in line or "rbp" in line for line in loop)
    assert sum("zmm" in line for line in loop) <= dots * (28 + 14 + 2) // 28


def test_bytes_on_other_chips():
    """NEON's dot products, and sums of pairs of i16 on x86 without dot products."""
    loop = inner_loop(cpu_kernels.assembly(grouped_tile("i8", "i32", 4), CHIPS["neoverse-v1"]))
    assert sum("usdot" in line for line in loop) >= 14 * 8
    pairs = cpu_kernels.assembly(grouped_tile("bf16", "f32", 2), CHIPS["neoverse-v1"])
    assert sum("bfdot" in line for line in inner_loop(pairs)) >= 14 * 8 and not calls(pairs)
    plain = cpu_kernels.assembly(grouped_tile("i8", "i32", 4), CHIPS["x86-64-v3"])
    assert "vpdp" not in plain and "vpmulld" not in plain and not calls(plain)
    assert sum("vpmaddwd" in line for line in inner_loop(plain)) >= 2 * 14 * 4


@pytest.mark.parametrize("chip", ["", "x86-64-v3", "x86-64-v4"])
def test_numbers_of_dot_products(chip):
    """The extremes of the bytes, exact on this machine's instructions and on those of older ones."""
    rng = np.random.default_rng(0)
    a = rng.choice([0, 255, 254, 7], (14, 256)).astype(np.uint8)
    b = rng.choice([-128, 127, -3], (64, 32, 4)).astype(np.int8)
    out = np.zeros((14, 32), np.int32)
    library = cpu_kernels.load(grouped_tile("i8", "i32", 4), chip=CHIPS.get(chip))
    cpu_kernels.call(library, "tile", a.view(np.int8), b, out)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.transpose(0, 2, 1).reshape(256, 32).astype(np.int32))

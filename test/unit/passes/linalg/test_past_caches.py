"""Stores past the caches: where buffers are aligned, and the same numbers where they are not."""

import ctypes

import cpu_kernels
import numpy as np
import pytest
import test_tile

from xcc.targets.cpu.chip import CHIPS

DOUBLE = """
func.func @double(%x: memref<?x64xf32>, %out: memref<?x64xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 64]], xt.result_dims = [["d0", 64]]} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    scf.for %j = %c0 to %c64 step %c32 {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true]} : memref<?x64xf32>, vector<32xf32>
      %w = arith.addf %v, %v : vector<32xf32>
      vector.transfer_write %w, %out[%i, %j] {in_bounds = [true], xcc.stream} : vector<32xf32>, memref<?x64xf32>
    }
  } {xcc.parallel}
  return
}
"""


@pytest.mark.parametrize("skip", [0, 4, 60])
def test_any_alignment(skip):
    library = cpu_kernels.load(DOUBLE)
    x = np.arange(1000 * 64, dtype=np.float32).reshape(1000, 64)
    raw = np.zeros(x.nbytes + 128, np.uint8)
    first = -raw.ctypes.data % 64 + skip
    out = raw[first:first + x.nbytes].view(np.float32).reshape(x.shape)
    library.double(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(1000))
    np.testing.assert_array_equal(out, 2 * x)
    assert not raw[:first].any() and not raw[first + x.nbytes:].any()


@pytest.mark.parametrize("chip, name", [("x86-64-v4", "vmovntps"), ("x86-64-v3", "vmovntps"), ("neoverse-v1", "stnp")])
def test_instruction(chip, name):
    assert cpu_kernels.assembly(DOUBLE, CHIPS[chip]).count(name) >= 2


def static(text, rows, columns):
    """`text` with numbers in place of its symbols d0 and d1."""
    for old, new in ((", %d0: index, %d1: index", ""), ('["d0", "d1"],', "[],"), ("(%d0, %d1)", "()"), ("(%d0)", "()"),
                     ('[["d0", "d1"]]', f"[[{rows}, {columns}]]"), ("?x?", f"{rows}x{columns}"), ("?x", f"{rows}x")):
        text = text.replace(old, new)
    return text


def test_rows_wait_on_the_stack():
    """Softmax with its exponentials parked: those must not go through the result's lines; the next row is fetched."""
    config = ("attributes {xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 1, 32>, "
              "order = array<i64: 0, 1>, reduce = [array<i64: 32>, array<i64: 32>], parallel = true, "
              "cpu = {park = 1 : i64, ahead = 96 : i64, stream = true}}, ")
    program = test_tile.tiled(static(test_tile.SOFTMAX, 100, 96).replace("attributes {", config, 1))
    assert program.count("memref.alloca") == 1 and program.count("memref.prefetch") == 2
    x, out = test_tile.normal(100, 96) * 5, test_tile.fresh(100, 96)
    test_tile.call(test_tile.load(program), "k", x, out)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)

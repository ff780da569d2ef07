"""Tile programs compiled for this CPU against numpy, at odd shapes, next to a page that faults."""

from dataclasses import replace

import cpu_kernels
import numpy as np
import pytest

from xcc.targets.cpu import chip as cpu_chip

POINTWISE = """
func.func @pointwise(%x: memref<?x40xf32>, %out: memref<?x40xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 40]], xt.result_dims = [["d0", 40]]} {
  %c40 = arith.constant 40 : index
  %c2 = arith.constant 2 : index
  %pad = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : vector<2x32xf32>
  %n = arith.ceildivsi %d0, %c2 : index
  scf.forall (%i, %j) in (%n, 2) {
    %r = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %c = affine.apply affine_map<(d0) -> (d0 * 32)>(%j)
    %rows = arith.subi %d0, %r : index
    %columns = arith.subi %c40, %c : index
    %m = vector.create_mask %rows, %columns : vector<2x32xi1>
    %v = vector.transfer_read %x[%r, %c], %pad, %m {in_bounds = [true, true]} : memref<?x40xf32>, vector<2x32xf32>
    %w = arith.addf %v, %one : vector<2x32xf32>
    vector.transfer_write %w, %out[%r, %c], %m {in_bounds = [true, true]} : vector<2x32xf32>, memref<?x40xf32>
  } {xcc.parallel}
  return
}
"""

ROW_SUM = """
func.func @norm(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d0", "d1"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c48 = arith.constant 48 : index
  %pad = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %lows = arith.constant dense<0xFF800000> : vector<4xf32>
  %n = arith.ceildivsi %d0, %c4 : index
  scf.forall (%i) in (%n) {
    %r = arith.muli %i, %c4 : index
    %rows = arith.subi %d0, %r : index
    %sums:2 = scf.for %c = %c0 to %d1 step %c48 iter_args(%s = %zero, %t = %lows) -> (vector<4xf32>, vector<4xf32>) {
      %columns = arith.subi %d1, %c : index
      %m = vector.create_mask %rows, %columns : vector<4x48xi1>
      %v = vector.transfer_read %x[%r, %c], %pad, %m {in_bounds = [true, true]} : memref<?x?xf32>, vector<4x48xf32>
      %s1 = vector.multi_reduction <add>, %v, %s [1] : vector<4x48xf32> to vector<4xf32>
      %u = vector.transfer_read %x[%r, %c], %low, %m {in_bounds = [true, true]} : memref<?x?xf32>, vector<4x48xf32>
      %t1 = vector.multi_reduction <maximumf>, %u, %t [1] : vector<4x48xf32> to vector<4xf32>
      scf.yield %s1, %t1 : vector<4xf32>, vector<4xf32>
    }
    %a = vector.shape_cast %sums#0 : vector<4xf32> to vector<4x1xf32>
    %ab = vector.broadcast %a : vector<4x1xf32> to vector<4x48xf32>
    %b = vector.shape_cast %sums#1 : vector<4xf32> to vector<4x1xf32>
    %bb = vector.broadcast %b : vector<4x1xf32> to vector<4x48xf32>
    scf.for %c = %c0 to %d1 step %c48 {
      %columns = arith.subi %d1, %c : index
      %m = vector.create_mask %rows, %columns : vector<4x48xi1>
      %v = vector.transfer_read %x[%r, %c], %pad, %m {in_bounds = [true, true]} : memref<?x?xf32>, vector<4x48xf32>
      %w = arith.mulf %v, %ab : vector<4x48xf32>
      %z = arith.subf %w, %bb : vector<4x48xf32>
      vector.transfer_write %z, %out[%r, %c], %m {in_bounds = [true, true]} : vector<4x48xf32>, memref<?x?xf32>
    }
  } {xcc.parallel}
  return
}
"""

MATMUL = """
func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %out: memref<?x?xf32>, %d0: index, %d1: index, %d2: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"],
                xt.arg_dims = [["d0", "d2"], ["d2", "d1"]], xt.result_dims = [["d0", "d1"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c14 = arith.constant 14 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<14x32xf32>
  %m = arith.ceildivsi %d0, %c14 : index
  %n = arith.ceildivsi %d1, %c32 : index
  scf.forall (%i, %j) in (%m, %n) {
    %r = arith.muli %i, %c14 : index
    %c = arith.muli %j, %c32 : index
    %rows = arith.subi %d0, %r : index
    %columns = arith.subi %d1, %c : index
    %acc = scf.for %k = %c0 to %d2 step %c1 iter_args(%s = %zero) -> (vector<14x32xf32>) {
      %ma = vector.create_mask %rows, %c1 : vector<14x1xi1>
      %mb = vector.create_mask %c1, %columns : vector<1x32xi1>
      %x = vector.transfer_read %a[%r, %k], %pad, %ma {in_bounds = [true, true]} : memref<?x?xf32>, vector<14x1xf32>
      %y = vector.transfer_read %b[%k, %c], %pad, %mb {in_bounds = [true, true]} : memref<?x?xf32>, vector<1x32xf32>
      %t = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                             affine_map<(m, n, k) -> (m, n)>],
                            iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
           %x, %y, %s : vector<14x1xf32>, vector<1x32xf32> into vector<14x32xf32>
      scf.yield %t : vector<14x32xf32>
    }
    %mo = vector.create_mask %rows, %columns : vector<14x32xi1>
    vector.transfer_write %acc, %out[%r, %c], %mo {in_bounds = [true, true]} : vector<14x32xf32>, memref<?x?xf32>
  } {xcc.parallel}
  return
}
"""

TRANSPOSE = """
func.func @transpose(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d1", "d0"]]} {
  %c16 = arith.constant 16 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %m = arith.ceildivsi %d0, %c16 : index
  %n = arith.ceildivsi %d1, %c8 : index
  scf.forall (%i, %j) in (%m, %n) {
    %r = arith.muli %i, %c16 : index
    %c = arith.muli %j, %c8 : index
    %rows = arith.subi %d0, %r : index
    %columns = arith.subi %d1, %c : index
    %mr = vector.create_mask %rows, %columns : vector<16x8xi1>
    %v = vector.transfer_read %x[%r, %c], %pad, %mr
       {in_bounds = [true, true], permutation_map = affine_map<(a, b) -> (b, a)>} : memref<?x?xf32>, vector<8x16xf32>
    %mw = vector.create_mask %columns, %rows : vector<8x16xi1>
    vector.transfer_write %v, %out[%c, %r], %mw {in_bounds = [true, true]} : vector<8x16xf32>, memref<?x?xf32>
  }
  return
}
"""

GATHER = """
func.func @gather(%x: memref<?x5xf32>, %at: memref<?xi64>, %out: memref<?x5xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", 5], ["d1"]], xt.result_dims = [["d1", 5]]} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0 : i64
  %five = arith.constant dense<5> : vector<4x8xindex>
  %pads = arith.constant dense<0.0> : vector<4x8xf32>
  %n = arith.ceildivsi %d1, %c4 : index
  %flat = memref.collapse_shape %x [[0, 1]] : memref<?x5xf32> into memref<?xf32>
  scf.forall (%i) in (%n) {
    %r = arith.muli %i, %c4 : index
    %rows = arith.subi %d1, %r : index
    %m1 = vector.create_mask %rows : vector<4xi1>
    %m = vector.create_mask %rows, %c5 : vector<4x8xi1>
    %v = vector.transfer_read %at[%r], %zero, %m1 {in_bounds = [true]} : memref<?xi64>, vector<4xi64>
    %w = arith.index_cast %v : vector<4xi64> to vector<4xindex>
    %w1 = vector.shape_cast %w : vector<4xindex> to vector<4x1xindex>
    %w2 = vector.broadcast %w1 : vector<4x1xindex> to vector<4x8xindex>
    %row = arith.muli %w2, %five : vector<4x8xindex>
    %s = vector.step : vector<8xindex>
    %s2 = vector.broadcast %s : vector<8xindex> to vector<4x8xindex>
    %p = arith.addi %row, %s2 : vector<4x8xindex>
    %g = vector.gather %flat[%c0][%p], %m, %pads
       : memref<?xf32>, vector<4x8xindex>, vector<4x8xi1>, vector<4x8xf32> into vector<4x8xf32>
    vector.transfer_write %g, %out[%r, %c0], %m {in_bounds = [true, true]} : vector<4x8xf32>, memref<?x5xf32>
  } {xcc.parallel}
  return
}
"""


def narrower_chips():
    """This machine, and the same with half and a quarter of its vector width."""
    host = cpu_chip.host()
    return [replace(host, vector_bytes=n) for n in (64, 32, 16) if n <= host.vector_bytes]


@pytest.fixture(scope="module", params=narrower_chips(), ids=lambda c: f"{c.vector_bytes}-bytes")
def library(request):
    return cpu_kernels.load(POINTWISE + ROW_SUM + MATMUL + TRANSPOSE + GATHER, chip=request.param)


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s, dtype=np.float32) for s in shapes]


@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_pointwise(library, n):
    (x,) = arrays((n, 40))
    out = np.full_like(x, np.nan)
    cpu_kernels.call(library, "pointwise", x, out, n)
    np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("shape", [(1, 1), (5, 47), (9, 97), (4, 96)])
def test_reductions(library, shape):
    (x,) = arrays(shape)
    out = np.full_like(x, np.nan)
    cpu_kernels.call(library, "norm", x, out, *shape)
    expected = x * x.sum(1, keepdims=True) - x.max(1, keepdims=True)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (14, 32, 5), (15, 33, 17), (41, 70, 3), (29, 31, 0)])
def test_matmul(library, m, n, k):
    a, b = arrays((m, k), (k, n))
    out = np.full((m, n), np.nan, np.float32)
    cpu_kernels.call(library, "matmul", a, b, out, m, n, k)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (16, 8), (17, 9), (3, 30), (31, 5)])
def test_transpose(library, shape):
    (x,) = arrays(shape)
    out = np.full(shape[::-1], np.nan, np.float32)
    cpu_kernels.call(library, "transpose", x, out, *shape)
    np.testing.assert_array_equal(out, x.T)


def test_gather(library):
    (x,) = arrays((11, 5))
    at = np.array([3, 10, 0, 0, 7, 9], np.int64)
    out = np.full((6, 5), np.nan, np.float32)
    cpu_kernels.call(library, "gather", x, at, out, 11, 6)
    np.testing.assert_array_equal(out, x[at])

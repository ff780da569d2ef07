"""The numbers of what stands for operations that GPUs have no instruction for, computed on this CPU."""

import ctypes

import cpu_kernels
import numpy as np
import pytest

from xcc._mlir import arith_d, ir
from xcc.context import new_context, parse_module
from xcc.passes.base import PassContext, get_pass
from xcc.passes.gpu import hardware_math
from xcc.passes.shared.values import splat_constant
from xcc.passes.walk import ops_where
from xcc.targets.cpu import chip as cpu_chip

REMAINDER = """
func.func @remainder(%x: memref<?xT>, %y: memref<?xT>, %o: memref<?xT>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0"], ["d0"]], xt.result_dims = [["d0"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %d0 step %c1 {
    %a = memref.load %x[%i] : memref<?xT>
    %b = memref.load %y[%i] : memref<?xT>
    %r = arith.remf %a, %b : T
    memref.store %r, %o[%i] : memref<?xT>
  }
  return
}
"""


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_remainders(kind, dtype):
    """Those of small and of large quotients, of infinities and of zeros: bit for bit C's fmod."""
    module = parse_module(REMAINDER.replace("T", kind), new_context(), "test")
    with module.context:
        get_pass("hardware-math")().run(module, PassContext(chip=cpu_chip.host()))
        text = str(module)
    assert "remf" not in text
    library = cpu_kernels.load(text, threads=1)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 20000)) * np.exp2(rng.uniform(-25, 25, (2, 20000)))
    special = np.array([0.0, -0.0, 1.0, -3.0, 7.5, 1e10, -1e18, 1e-12, np.inf, -np.inf, np.nan])
    x, y = (np.concatenate([v, s.ravel()]).astype(dtype) for v, s in
            zip((x, y), np.meshgrid(special, special[np.abs(special) != 1e-12]), strict=True))
    got = np.empty_like(x)
    library.remainder(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, got)), ctypes.c_int64(x.size))
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


MEAN = """
func.func @mean(%x: memref<?xf32>, %n: memref<?xi32>, %o: memref<?xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0"], ["d0"]], xt.result_dims = [["d0"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %d0 step %c1 {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = memref.load %n[%i] : memref<?xi32>
    %f = arith.sitofp %b : i32 to f32
    %r = arith.divf %a, %f : f32
    memref.store %r, %o[%i] : memref<?xf32>
  }
  return
}
"""


@pytest.mark.parametrize("wrong", [0.0, -(2.0**-24), 2.0**-23])
def test_means(wrong):
    """By reciprocals that are off by up to 2^-23: as rounded as a division, infinities and quotients by 0 too."""
    module = parse_module(MEAN, new_context(), "test")
    with module.context:
        op, = ops_where(module, lambda op: op.name == "arith.divf")
        with op.location, ir.InsertionPoint(op):
            def reciprocal(n):
                return arith_d.mulf(arith_d.divf(splat_constant(n.type, 1.0), n), splat_constant(n.type, 1 + wrong))

            made = hardware_math._mean(reciprocal, *op.operands)
        op.results[0].replace_all_uses_with(made)
        op.erase()
        get_pass("hardware-math")().run(module, PassContext(chip=cpu_chip.host()))
    library = cpu_kernels.load(str(module), threads=1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50000) * np.exp2(rng.uniform(-60, 90, 50000))
    n = rng.integers(1, 2**rng.integers(1, 31, 50000))
    special = np.array([0.0, -0.0, 1.0, -3.0, 1e38, np.inf, -np.inf, np.nan])
    x, n = (np.concatenate([v, s.ravel()]) for v, s in
            zip((x, n), np.meshgrid(special, [0, 1, 3, 7, 2**30]), strict=True))
    x, n = x.astype(np.float32), n.astype(np.int32)
    got = np.empty_like(x)
    library.mean(*(ctypes.c_void_p(a.ctypes.data) for a in (x, n, got)), ctypes.c_int64(x.size))
    with np.errstate(all="ignore"):
        want = x / n.astype(np.float32)
    np.testing.assert_array_equal(got, want)

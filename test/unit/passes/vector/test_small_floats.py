"""bf16 and f8 on the CPU, bit for bit against ml_dtypes."""

import cpu_kernels
import ml_dtypes
import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext
from xcc.passes.vector.expand_floats import ExpandFloats
from xcc.targets.cpu import chip as cpu_chip

TYPES = {"bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
         "f16": np.float16}

KERNEL = """
func.func @narrow_{e}_{w}(%x: memref<?x{w}>, %out: memref<?x{e}>, %d0: index)
    attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0.0 : {w}
  scf.forall (%i) = (0) to (%d0) step (32) {{
    %v = vector.transfer_read %x[%i], %pad {{in_bounds = [true]}} : memref<?x{w}>, vector<32x{w}>
    %r = arith.truncf %v : vector<32x{w}> to vector<32x{e}>
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : vector<32x{e}>, memref<?x{e}>
  }}
  return
}}
func.func @double_{e}_{w}(%x: memref<?x{e}>, %out: memref<?x{w}>, %d0: index)
    attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0.0 : {e}
  scf.forall (%i) = (0) to (%d0) step (32) {{
    %v = vector.transfer_read %x[%i], %pad {{in_bounds = [true]}} : memref<?x{e}>, vector<32x{e}>
    %s = arith.addf %v, %v : vector<32x{e}>
    %r = arith.extf %s : vector<32x{e}> to vector<32x{w}>
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : vector<32x{w}>, memref<?x{w}>
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def library():
    return cpu_kernels.load("".join(KERNEL.format(e=e, w=w) for e in TYPES for w in ("f32", "f64")))


def rounded(x, name):
    """`x` as `name`; where the CPU rounds to bf16, what is below its least normal number becomes 0."""
    out = x.astype(TYPES[name])
    if name == "bf16" and "bf16" in cpu_chip.host().matrix:
        out[np.abs(x) < 2.0**-126] *= 0
    return out


def same(got, want):
    nan = np.isnan(want.astype(np.float32))
    raw = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
    np.testing.assert_array_equal(got.view(raw)[~nan], want.view(raw)[~nan])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_narrowing(library, name, wide):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32).view(np.float32)
    scale = np.exp2(rng.uniform(-20, 18, 1 << 14)).astype(np.float32) * rng.choice([-1, 1], 1 << 14)
    every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    halves = every + np.float32(2**-10)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61440, 65520, 3.4e38, 1e-45] + [1] * 19)
    x = np.concatenate([bits, scale, every, halves, special]).astype(np.float32 if wide == "f32" else np.float64)
    if wide == "f64":
        x = x * (1 + rng.choice([0, 2**-40, -2**-40], x.size))
    out = np.zeros(x.size, TYPES[name])
    cpu_kernels.call(library, f"narrow_{name}_{wide}", x, out, x.size)
    with np.errstate(all="ignore"):
        want = rounded(x, name)
        if wide == "f64" and name != "f16":      # ml_dtypes goes through f32; leave out where that rounds twice
            keep = x.astype(np.float32).astype(np.float64) == x
            keep |= np.isnan(x)
            out, want = out[keep], want[keep]
    same(out, want)


@pytest.mark.parametrize("name", TYPES)
def test_arithmetic(library, name):
    count = 256 if np.dtype(TYPES[name]).itemsize == 1 else 65536
    x = np.arange(count, dtype=np.uint8 if count == 256 else np.uint16).view(TYPES[name])
    out = np.zeros(count, np.float32)
    cpu_kernels.call(library, f"double_{name}_f32", x, out, count)
    with np.errstate(all="ignore"):
        want = rounded(x.astype(np.float32) * 2, name).astype(np.float32)
    same(out, want)


HALVES = """gpu.module @m {{ gpu.func @k(%x: memref<256x{e}>, %y: memref<256xf16>, %z: memref<256xf32>) kernel {{
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %i = arith.muli %t, %c4 : index
  %v = vector.load %x[%i] : memref<256x{e}>, vector<4x{e}>
  %h = arith.extf %v : vector<4x{e}> to vector<4xf16>
  vector.store %h, %y[%i] : memref<256xf16>, vector<4xf16>
  %s = memref.load %x[%i] : memref<256x{e}>
  %f = arith.extf %s : {e} to f32
  memref.store %f, %z[%t] : memref<256xf32>
  gpu.return
}} }}"""


@pytest.mark.parametrize("name", ["f8E4M3FN", "f8E5M2"])
def test_every_code_becomes_f16_in_arithmetic_of_16_bits(name):
    codes = np.arange(256, dtype=np.uint8).view(TYPES[name])
    half, single = np.full(256, np.inf, np.float16), np.full(256, np.inf, np.float32)
    with ir.Context():
        module = ir.Module.parse(HALVES.format(e=name))
        ExpandFloats(bf16=False, halves=True).run(module, PassContext())
        assert "arith.extf" not in str(module).split("memref.load")[0]
        run_kernel(module, "k", (1, 1, 1), (64, 1, 1), [codes, half, single], [], Options(warp=64), 0)
    same(half, codes.astype(np.float16))
    same(single[:64], codes[::4].astype(np.float32))

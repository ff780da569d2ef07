"""Matrix instructions: the interpreter's fragment tables, and whole small products that go through them."""

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.interpreter.ops_matrix import mfma_fragments, mma_fragments, wmma_fragments

SHARED = "#gpu.address_space<workgroup>"

TABLES = {
    **{f"mma m{m}n{n}k{k} {size}B": mma_fragments(m, n, k, size)
       for m, n, k, size in ((16, 8, 8, 2), (16, 8, 16, 2), (16, 8, 4, 4), (16, 8, 8, 4), (16, 8, 16, 1), 
                             (16, 8, 32, 1), (8, 8, 4, 8))},
    **{f"mfma {m}x{m}x{k}": mfma_fragments(m, m, k, False)
       for m, k in ((16, 4), (16, 8), (16, 16), (16, 32), (16, 64), (32, 2), (32, 4), (32, 8), (32, 16), (32, 32))},
    "mfma f64": mfma_fragments(16, 16, 4, True),
    "wmma rdna4": wmma_fragments(16, 8),
}


@pytest.mark.parametrize("name", TABLES)
def test_each_element_is_held_once(name):
    for fragment in TABLES[name]:
        places = set(zip(fragment.row.reshape(-1).tolist(), fragment.column.reshape(-1).tolist(), strict=True))
        assert len(places) == fragment.row.size == fragment.shape[0] * fragment.shape[1]
        assert {p[0] for p in places} == set(range(fragment.shape[0]))
        assert {p[1] for p in places} == set(range(fragment.shape[1]))


def test_rdna3_holds_a_twice_and_c_once():
    a, b, c = wmma_fragments(16, 16)
    assert a.row.size == 2 * 256 and b.row.size == 2 * 256
    assert len(set(zip(c.row.reshape(-1).tolist(), c.column.reshape(-1).tolist(), strict=True))) == 256


def test_ldmatrix_feeds_mma_sync():
    text = f"""gpu.module @m {{
      gpu.func @k(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>)
          workgroup(%sa: memref<16x16xf16, {SHARED}>, %sb: memref<16x8xf16, {SHARED}>) kernel {{
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %c16 = arith.constant 16 : index
        %row = arith.divui %t, %c2 : index
        %half = arith.remui %t, %c2 : index
        %col8 = arith.muli %half, %c8 : index
        %col4 = arith.muli %half, %c4 : index
        %va = vector.load %a[%row, %col8] : memref<16x16xf16>, vector<8xf16>
        vector.store %va, %sa[%row, %col8] : memref<16x16xf16, {SHARED}>, vector<8xf16>
        %vb = vector.load %b[%row, %col4] : memref<16x8xf16>, vector<4xf16>
        vector.store %vb, %sb[%row, %col4] : memref<16x8xf16, {SHARED}>, vector<4xf16>
        gpu.barrier
        %r16 = arith.remui %t, %c16 : index
        %q16 = arith.divui %t, %c16 : index
        %k8 = arith.muli %q16, %c8 : index
        %fa = nvgpu.ldmatrix %sa[%r16, %k8] {{numTiles = 4 : i32, transpose = false}}
            : memref<16x16xf16, {SHARED}> -> vector<4x2xf16>
        %fb = nvgpu.ldmatrix %sb[%r16, %c0] {{numTiles = 2 : i32, transpose = true}}
            : memref<16x8xf16, {SHARED}> -> vector<2x2xf16>
        %zero = arith.constant dense<0.0> : vector<2x2xf32>
        %d = nvgpu.mma.sync(%fa, %fb, %zero) {{mmaShape = [16, 8, 16]}}
            : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
        %g = arith.divui %t, %c4 : index
        %m = arith.remui %t, %c4 : index
        %col = arith.muli %m, %c2 : index
        %g8 = arith.addi %g, %c8 : index
        %lo = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
        %hi = vector.extract %d[1] : vector<2xf32> from vector<2x2xf32>
        vector.store %lo, %c[%g, %col] : memref<16x8xf32>, vector<2xf32>
        vector.store %hi, %c[%g8, %col] : memref<16x8xf32>, vector<2xf32>
        gpu.return
      }} }}"""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((16, 16), (16, 8)))
    c = np.full((16, 8), np.nan, np.float32)
    report = run_kernel(text, "k", (1, 1, 1), (32, 1, 1), [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6, atol=1e-6)
    assert report.ops["nvgpu.mma.sync"] == 1


MFMA = """gpu.module @m {
  gpu.func @k(%a: memref<32x8xf16>, %bt: memref<32x8xf16>, %c: memref<32x32xf32>) kernel {
    %t = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %line = arith.remui %t, %c32 : index
    %half = arith.divui %t, %c32 : index
    %k = arith.muli %half, %c4 : index
    %fa = vector.load %a[%line, %k] : memref<32x8xf16>, vector<4xf16>
    %fb = vector.load %bt[%line, %k] : memref<32x8xf16>, vector<4xf16>
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %d = amdgpu.mfma 32x32x8 %fa * %fb + %zero blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %STORES
    gpu.return
  } }"""


def test_mfma_32x32x8():
    stores = "".join(f"""
        %o{r} = arith.constant {8 * (r // 4) + r % 4} : index
        %r{r} = arith.addi %o{r}, %k : index
        %e{r} = vector.extract %d[{r}] : f32 from vector<16xf32>
        memref.store %e{r}, %c[%r{r}, %line] : memref<32x32xf32>""" for r in range(16))
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((32, 8)).astype(np.float16) for _ in range(2))
    c = np.full((32, 32), np.nan, np.float32)
    text = MFMA.replace("%STORES", stores)
    run_kernel(text, "k", (1, 1, 1), (64, 1, 1), [a, b, c], options=Options(warp=64))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-6, atol=1e-6)
    with pytest.raises(UserError, match="64 lanes"):
        run_kernel(text, "k", (1, 1, 1), (64, 1, 1), [a, b, c], options=Options(warp=32))

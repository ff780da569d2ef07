"""The interpreter computes what a GPU would, for hand-written kernels."""

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options

SHARED = "#gpu.address_space<workgroup>"


def module(body: str) -> str:
    return f"gpu.module @m {{\n{body}\n}}"


def test_pointwise_with_a_guard_for_the_last_block():
    text = module("""
      gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel {
        %t = gpu.global_id x
        %in = arith.cmpi slt, %t, %n : index
        scf.if %in {
          %v = memref.load %x[%t] : memref<?xf32>
          %e = math.exp %v : f32
          memref.store %e, %y[%t] : memref<?xf32>
        }
        gpu.return
      }""")
    x = np.linspace(-2, 2, 1000, dtype=np.float32)
    y = np.full_like(x, np.nan)
    run_kernel(text, "k", (8, 1, 1), (128, 1, 1), [x, y], [1000])
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


def test_row_sum_by_shuffles():
    text = module("""
      gpu.func @k(%x: memref<?x64xf32>, %y: memref<?xf32>) kernel {
        %b = gpu.block_id x
        %t = gpu.thread_id x
        %c2 = arith.constant 2 : index
        %at = arith.muli %t, %c2 : index
        %v = vector.load %x[%b, %at] {alignment = 8} : memref<?x64xf32>, vector<2xf32>
        %s = vector.reduction <add>, %v : vector<2xf32> into f32
        %w = arith.constant 32 : i32
        %c1 = arith.constant 1 : i32
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %five = arith.constant 5 : index
        %sum = scf.for %i = %zero to %five step %one iter_args(%acc = %s) -> f32 {
          %i32 = arith.index_cast %i : index to i32
          %o = arith.shli %c1, %i32 : i32
          %p, %ok = gpu.shuffle xor %acc, %o, %w : f32
          %n = arith.addf %acc, %p : f32
          scf.yield %n : f32
        }
        %first = arith.cmpi eq, %t, %zero : index
        scf.if %first {
          memref.store %sum, %y[%b] : memref<?xf32>
        }
        gpu.return
      }""")
    x = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
    y = np.full(5, np.nan, np.float32)
    run_kernel(text, "k", (5, 1, 1), (32, 1, 1), [x, y])
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5)


TRANSPOSE = """
      gpu.func @k(%x: memref<32x64xf16>, %y: memref<64x32xf16>)
          workgroup(%s: memref<32xPITCHxf16, #gpu.address_space<workgroup>>) kernel {
        %bx = gpu.block_id x
        %tx = gpu.thread_id x
        %ty = gpu.thread_id y
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c32 = arith.constant 32 : index
        %col0 = arith.muli %bx, %c32 : index
        scf.for %i = %c0 to %c32 step %c8 {
          %row = arith.addi %ty, %i : index
          %col = arith.addi %tx, %col0 : index
          %v = memref.load %x[%row, %col] : memref<32x64xf16>
          memref.store %v, %s[%row, %tx] : memref<32xPITCHxf16, #gpu.address_space<workgroup>>
        }
        gpu.barrier
        scf.for %i = %c0 to %c32 step %c8 {
          %row = arith.addi %ty, %i : index
          %v = memref.load %s[%tx, %row] : memref<32xPITCHxf16, #gpu.address_space<workgroup>>
          %out = arith.addi %row, %col0 : index
          memref.store %v, %y[%out, %tx] : memref<64x32xf16>
        }
        gpu.return
      }"""


@pytest.mark.parametrize(("pitch", "worst"), [(32, 16), (34, 1)])
def test_transpose_through_shared_memory_counts_bank_conflicts(pitch, worst):
    x = np.arange(32 * 64, dtype=np.float16).reshape(32, 64)
    y = np.full((64, 32), np.nan, np.float16)
    report = run_kernel(module(TRANSPOSE.replace("PITCH", str(pitch))), "k", (2, 1, 1), (32, 8, 1), [x, y])
    np.testing.assert_array_equal(y, x.T)
    assert max(site.conflict_ratio for site in report.sites.values()) == worst
    assert report.shared_bytes == 32 * pitch * 2


def test_while_runs_each_thread_its_own_number_of_times():
    text = module("""
      gpu.func @k(%y: memref<64xi32>) kernel {
        %t = gpu.thread_id x
        %ti = arith.index_cast %t : index to i32
        %c1 = arith.constant 1 : i32
        %c0 = arith.constant 0 : i32
        %c3 = arith.constant 3 : i32
        %r:2 = scf.while (%n = %ti, %steps = %c0) : (i32, i32) -> (i32, i32) {
          %go = arith.cmpi sgt, %n, %c0 : i32
          scf.condition(%go) %n, %steps : i32, i32
        } do {
        ^bb0(%n: i32, %steps: i32):
          %m = arith.divsi %n, %c3 : i32
          %s = arith.addi %steps, %c1 : i32
          scf.yield %m, %s : i32, i32
        }
        memref.store %r#1, %y[%t] : memref<64xi32>
        gpu.return
      }""")
    y = np.zeros(64, np.int32)
    run_kernel(text, "k", (1, 1, 1), (64, 1, 1), [y])
    want = [len(np.base_repr(n, 3)) if n else 0 for n in range(64)]
    np.testing.assert_array_equal(y, want)


def test_dynamic_shared_memory_seen_with_two_types():
    text = module(f"""
      gpu.func @k(%y: memref<64xf32>) kernel {{
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c256 = arith.constant 256 : index
        %raw = gpu.dynamic_shared_memory : memref<?xi8, {SHARED}>
        %a = memref.view %raw[%c0][] : memref<?xi8, {SHARED}> to memref<64xf32, {SHARED}>
        %b = memref.view %raw[%c256][] : memref<?xi8, {SHARED}> to memref<64xf16, {SHARED}>
        %i = arith.index_cast %t : index to i32
        %f = arith.sitofp %i : i32 to f32
        %h = arith.truncf %f : f32 to f16
        memref.store %f, %a[%t] : memref<64xf32, {SHARED}>
        memref.store %h, %b[%t] : memref<64xf16, {SHARED}>
        gpu.barrier
        %c63 = arith.constant 63 : index
        %o = arith.subi %c63, %t : index
        %x = memref.load %a[%o] : memref<64xf32, {SHARED}>
        %z = memref.load %b[%o] : memref<64xf16, {SHARED}>
        %w = arith.extf %z : f16 to f32
        %s = arith.addf %x, %w : f32
        memref.store %s, %y[%t] : memref<64xf32>
        gpu.return
      }}""")
    y = np.zeros(64, np.float32)
    report = run_kernel(text, "k", (1, 1, 1), (64, 1, 1), [y], dynamic_shared=384)
    np.testing.assert_array_equal(y, 2.0 * np.arange(63, -1, -1))
    assert report.shared_bytes == 384


def test_subview_and_masked_access():
    text = module("""
      gpu.func @k(%x: memref<4x10xf32>, %y: memref<4x10xf32>) kernel {
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c10 = arith.constant 10 : index
        %rest = arith.subi %c10, %c8 : index
        %row = memref.subview %x[%t, 0] [1, 10] [1, 1] : memref<4x10xf32> to memref<10xf32, strided<[1], offset: ?>>
        %zero = arith.constant dense<0.0> : vector<4xf32>
        %mask = vector.create_mask %rest : vector<4xi1>
        %v = vector.maskedload %row[%c8], %mask, %zero : memref<10xf32, strided<[1], offset: ?>>,
          vector<4xi1>, vector<4xf32> into vector<4xf32>
        %w = arith.addf %v, %v : vector<4xf32>
        vector.maskedstore %y[%t, %c8], %mask, %w : memref<4x10xf32>, vector<4xi1>, vector<4xf32>
        gpu.return
      }""")
    x = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    y = np.zeros_like(x)
    run_kernel(text, "k", (1, 1, 1), (4, 1, 1), [x, y])
    np.testing.assert_array_equal(y[:, 8:], 2 * x[:, 8:])
    assert not y[:, :8].any()


def test_unknown_ops_are_named_together():
    text = module("""
      gpu.func @k(%c: i1) kernel {
        %a = gpu.subgroup_broadcast %c, first_active_lane : i1
        %b = gpu.cluster_id x
        gpu.return
      }""")
    with pytest.raises(UserError, match="gpu.cluster_id .*gpu.subgroup_broadcast"):
        run_kernel(text, "k", (1, 1, 1), (32, 1, 1), [], [True])


def test_many_small_batches_give_the_same():
    text = module("""
      gpu.func @k(%y: memref<64xi32>) kernel {
        %t = gpu.global_id x
        %i = arith.index_cast %t : index to i32
        memref.store %i, %y[%t] : memref<64xi32>
        gpu.return
      }""")
    y = np.zeros(64, np.int32)
    run_kernel(text, "k", (4, 1, 1), (16, 1, 1), [y], options=Options(max_threads=1))
    np.testing.assert_array_equal(y, np.arange(64))


def test_shapes_come_from_the_kernels_attributes():
    text = module("""
      gpu.func @k(%x: memref<?x4xf32>, %y: memref<?xf32>, %d0: index) kernel attributes {
          xt.symbols = ["d0"], xt.arg_dims = [["d0", 4]], xt.result_dims = [["4*d0"]]} {
        %t = gpu.thread_id x
        %c4 = arith.constant 4 : index
        %row = arith.divui %t, %c4 : index
        %col = arith.remui %t, %c4 : index
        %v = memref.load %x[%row, %col] : memref<?x4xf32>
        memref.store %v, %y[%t] : memref<?xf32>
        gpu.return
      }""")
    x, y = np.arange(12, dtype=np.float32).reshape(1, 12), np.zeros((3, 2, 2), np.float32)
    run_kernel(text, "k", (1, 1, 1), (12, 1, 1), [x, y], [3])
    np.testing.assert_array_equal(y.reshape(-1), x.reshape(-1))
    with pytest.raises(UserError, match="argument 0 of k has shape"):
        run_kernel(text, "k", (1, 1, 1), (12, 1, 1), [x, y], [2])

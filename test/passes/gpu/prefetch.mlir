// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, distribute" | filecheck %s
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, distribute" | filecheck %s --check-prefix=AMD

// What the epilogue reads is asked for before the loop, a line of 64 elements by each thread that has one; coordinates
// stop at the last row.
// CHECK-LABEL: gpu.func @matmul(
// CHECK: nvvm.cp.async.commit.group
// CHECK: %[[ROW:.*]] = arith.minsi
// CHECK: memref.prefetch %arg2[%[[ROW]], %{{.*}}], read, locality<2>, data : memref<60x64xf16>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
// AMD-NOT: memref.prefetch
func.func @matmul(%a: memref<64x256xf16>, %b: memref<256x64xf16>, %r: memref<60x64xf16>, %o: memref<60x64xf16>) attributes {xt.kernel, xcc.config = {threads = 128 : i64, stages = 3 : i64}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c60 = arith.constant 60 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x64xf32>
    %s = scf.for %k = %c0 to %c256 step %c32 iter_args(%acc = %init) -> (vector<64x64xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x256xf16>, vector<64x32xf16>
      %tb = vector.transfer_read %b[%k, %c0], %h {in_bounds = [true, true]} : memref<256x64xf16>, vector<32x64xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x32xf16>, vector<32x64xf16> into vector<64x64xf32>
      scf.yield %c : vector<64x64xf32>
    }
    %mask = vector.create_mask %c60, %c64 : vector<64x64xi1>
    %x = vector.transfer_read %r[%c0, %c0], %h, %mask {in_bounds = [true, true]} : memref<60x64xf16>, vector<64x64xf16>
    %t = arith.truncf %s : vector<64x64xf32> to vector<64x64xf16>
    %y = arith.addf %t, %x : vector<64x64xf16>
    vector.transfer_write %y, %o[%c0, %c0], %mask {in_bounds = [true, true]} : vector<64x64xf16>, memref<60x64xf16>
  }
  return
}

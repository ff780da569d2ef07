// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, plan-shared-memory, distribute" | filecheck %s

// Rows of a (2016 bytes) are whole sectors of 32: copies go past the L1 cache. Rows of b (4048) begin within sectors, which
// the L1 cache joins. The index of the copy tells the matrix: both have tiles of their own in shared memory.
// CHECK-DAG: nvgpu.device_async_copy {{.*}}, 8 {bypassL1} : memref<{{.*}}xf16{{.*}}> to memref
// CHECK-DAG: nvgpu.device_async_copy {{.*}}, 8 : memref<{{.*}}xf16{{.*}}> to memref
func.func @product(%a: memref<256x1008xf16>, %b: memref<256x2024xf16>, %o: memref<256x256xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c992 = arith.constant 992 : index
  %z = arith.constant 0.0 : f16
  scf.forall (%i, %j) = (0, 0) to (256, 256) step (64, 128) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c992 step %c32 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%i, %k], %z {in_bounds = [true, true]} : memref<256x1008xf16>, vector<64x32xf16>
      %tb = vector.transfer_read %b[%j, %k], %z {in_bounds = [true, true]} : memref<256x2024xf16>, vector<128x32xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x32xf16>, vector<128x32xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%i, %j] {in_bounds = [true, true]} : vector<64x128xf32>, memref<256x256xf32>
  }
  return
}

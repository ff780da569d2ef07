// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands" | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, plan-shared-memory, distribute" | filecheck %s --check-prefix=COPIES
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1100 "--pass-pipeline=assign-layouts, stage-operands" | filecheck %s --check-prefix=AMD

// Both operands of a product by FMAs lie along k. Lanes have neighbours along k (dim 1), copied one by one; in shared
// memory neighbours lie along the rows (dim 0), the banks of neighbours along k apart.
// CHECK: xcc.layout = ["tile=[64,16] register={{\[\[8,0\],.*\]}} lane={{\[\[0,1\],\[0,2\],\[0,4\],\[0,8\],\[1,0\]\]}} warp
// CHECK: vector.contract {{.*}}xcc.staged = [{memory = "tile=[1024] dim0={{\[\[1\],\[2\],\[4\],\[8\],\[16\],\[32\]\]}} dim1={{\[\[68\],\[136\],\[272\],\[512\]\]}}"}, {memory = "tile=[2048] dim0={{\[\[1\],}}
// COPIES: nvgpu.device_async_copy {{.*}}, 1 :
// COPIES-NOT: bypassL1

// Without asynchronous copies, a thread loads four along k, and they lie so.
// AMD: xcc.layout = ["tile=[64,16] register={{\[\[0,1\],\[0,2\],}}
// AMD: xcc.staged = [{memory = "tile=[1024] {{.*}} dim1={{\[\[1\],\[2\],}}
func.func @product(%a: memref<256x512xf32>, %b: memref<256x500xf32>, %o: memref<256x256xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c496 = arith.constant 496 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i, %j) = (0, 0) to (256, 256) step (64, 128) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c496 step %c16 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%i, %k], %z {in_bounds = [true, true]} : memref<256x512xf32>, vector<64x16xf32>
      %tb = vector.transfer_read %b[%j, %k], %z {in_bounds = [true, true]} : memref<256x500xf32>, vector<128x16xf32>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x16xf32>, vector<128x16xf32> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%i, %j] {in_bounds = [true, true]} : vector<64x128xf32>, memref<256x256xf32>
  }
  return
}

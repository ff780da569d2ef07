// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, coarsen-grid" | filecheck %s --check-prefixes=CHECK,FOUR
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, coarsen-grid{instances=2}" | filecheck %s --check-prefixes=CHECK,TWO
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, coarsen-grid, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1100 "--pass-pipeline=assign-layouts, coarsen-grid, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE

// A row a warp, four to a workgroup; the last one may have fewer.
// CHECK-LABEL: func.func @rows(
// CHECK: vector.transfer_write
// FOUR-NEXT: } {xcc.instances = 4 : i64}
// TWO-NEXT: } {xcc.instances = 2 : i64}
// CODE-LABEL: gpu.func @rows(
// CODE-SAME: known_block_size = array<i32: 128, 1, 1>, xcc.grid = "floordiv(d0 + 3, 4)"
// CODE: %[[WARP:.*]] = arith.shrui %thread_id_x, %c5
// CODE: %[[FIRST:.*]] = arith.muli %block_id_x, %c4
// CODE: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[WARP]]
// CODE: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %arg2
// CODE: scf.if %[[INSIDE]] {
// CODE: vector.load %arg0[%[[ROW]],
// CODE-NOT: barrier
// CODE: gpu.return
func.func @rows(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 32 : i64, instances = 4 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    %s = vector.multi_reduction <add>, %a, %none [1] : vector<1x256xf32> to vector<1xf32>
    %b = vector.broadcast %s : vector<1xf32> to vector<256x1xf32>
    %t = vector.transpose %b, [1, 0] : vector<256x1xf32> to vector<1x256xf32>
    %y = arith.divf %a, %t : vector<1x256xf32>
    vector.transfer_write %y, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  }
  return
}

// What goes through shared memory has a place in it for each; nobody waits for other warps, for what was written neither.
// CHECK-LABEL: func.func @exchanged(
// CHECK: vector.transfer_write
// CHECK: vector.transfer_write
// FOUR-NEXT: } {xcc.instances = 4 : i64}
// CODE-LABEL: gpu.func @exchanged(
// CODE-SAME: xcc.grid = "2", xcc.shared_bytes = 4096
// CODE: %[[PLACE:.*]] = arith.muli %{{.*}}, %c1024
// CODE: memref.view %{{.*}}[%[[PLACE]]][]
// CODE-NOT: scf.if
// CODE-NOT: gpu.barrier
// CODE-NOT: lds_barrier
// CODE-COUNT-2: {{nvvm.bar.warp.sync|rocdl.wave.barrier}}
// CODE-NOT: lds_barrier
// CODE: gpu.return
func.func @exchanged(%x: memref<8x256xf32>, %y: memref<8x256xf32>, %o: memref<8x256xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64, instances = 4 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<8x256xf32>, vector<1x256xf32>
    %b = vector.shape_cast %a : vector<1x256xf32> to vector<16x16xf32>
    %c = vector.transpose %b, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
    %t = vector.shape_cast %c : vector<16x16xf32> to vector<1x256xf32>
    %d = arith.addf %a, %t : vector<1x256xf32>
    vector.transfer_write %d, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
    gpu.barrier
    vector.transfer_write %d, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<8x256xf32>
  }
  return
}

// Several warps compute a row together.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT: xcc.instances
func.func @wide(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 128 : i64, instances = 4 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    vector.transfer_write %a, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  }
  return
}

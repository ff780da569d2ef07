// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefixes=CHECK,NV
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefixes=CHECK,AMD

// A vote on each of four bits of a place finds the lanes that meet there; they go one after the other.
// CHECK-LABEL: gpu.func @add(
// NV-COUNT-5: gpu.ballot %{{.*}} : i32
// AMD-COUNT-5: gpu.ballot %{{.*}} : i64
// CHECK: math.ctpop
// CHECK: scf.if
// CHECK: memref.load
// CHECK: arith.addf
// CHECK: memref.store
// NV: nvvm.bar.warp.sync
// AMD: rocdl.wave.barrier
// CHECK: scf.while
// CHECK: gpu.ballot
// CHECK: scf.condition
// CHECK: gpu.barrier
func.func @add(%i: memref<64x4xi32>, %u: memref<64x4xf32>, %o: memref<64xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 256 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  scf.forall (%n) in (1) {
    %held = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %a = vector.transfer_read %i[%c0, %c0], %none {in_bounds = [true, true]} : memref<64x4xi32>, vector<64x4xi32>
    %b = vector.transfer_read %u[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x4xf32>, vector<64x4xf32>
    "tile.accumulate"(%held, %a, %b) {kind = "sum", limit = 16 : i64, stride = 16 : i64} : (memref<64xf32, #gpu.address_space<workgroup>>, vector<64x4xi32>, vector<64x4xf32>) -> ()
    gpu.barrier
    %step = vector.step : vector<64xindex>
    %every = arith.constant dense<true> : vector<64xi1>
    %other = arith.constant dense<0.0> : vector<64xf32>
    %s = vector.gather %held[%c0] [%step], %every, %other : memref<64xf32, #gpu.address_space<workgroup>>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
    vector.transfer_write %s, %o[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32>
  }
  return
}

// Where the last of a place stays, it alone is stored.
// CHECK-LABEL: gpu.func @last(
// CHECK: gpu.ballot
// CHECK-NOT: math.ctpop
// CHECK-NOT: scf.while
// CHECK: memref.store
func.func @last(%i: memref<64x4xi32>, %u: memref<64x4xf32>, %o: memref<64xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 256 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  scf.forall (%n) in (1) {
    %held = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %a = vector.transfer_read %i[%c0, %c0], %none {in_bounds = [true, true]} : memref<64x4xi32>, vector<64x4xi32>
    %b = vector.transfer_read %u[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x4xf32>, vector<64x4xf32>
    "tile.accumulate"(%held, %a, %b) {kind = "last", limit = 16 : i64, stride = 16 : i64} : (memref<64xf32, #gpu.address_space<workgroup>>, vector<64x4xi32>, vector<64x4xf32>) -> ()
    gpu.barrier
    %step = vector.step : vector<64xindex>
    %every = arith.constant dense<true> : vector<64xi1>
    %other = arith.constant dense<0.0> : vector<64xf32>
    %s = vector.gather %held[%c0] [%step], %every, %other : memref<64xf32, #gpu.address_space<workgroup>>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
    vector.transfer_write %s, %o[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32>
  }
  return
}

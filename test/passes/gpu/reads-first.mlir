// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, reads-first" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, reads-first" --split-input-file | filecheck %s --check-prefix=AMD

// The scale is read with the row, before the barrier of the reduction; what depends on the sum stays behind it.
// CHECK-LABEL: func.func @norm(
// CHECK: vector.transfer_read %arg0
// CHECK: vector.transfer_read %arg1
// CHECK: vector.multi_reduction
// CHECK: vector.transfer_read %arg2
// CHECK: vector.transfer_write
// AMD-LABEL: func.func @norm(
// AMD: vector.multi_reduction
// AMD: vector.transfer_read %arg1
func.func @norm(%x: memref<64x4096xf32>, %s: memref<4096xf32>, %t: memref<8192xf32>, %o: memref<64x4096xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (64) {
    %a = vector.transfer_read %x[%i, %c0], %f {in_bounds = [true]} : memref<64x4096xf32>, vector<4096xf32>
    %r = vector.multi_reduction <add>, %a, %f [0] : vector<4096xf32> to f32
    %at = arith.fptosi %r : f32 to i32
    %chosen = arith.index_cast %at : i32 to index
    %b = vector.broadcast %r : f32 to vector<4096xf32>
    %y = arith.subf %a, %b : vector<4096xf32>
    %w = vector.transfer_read %s[%c0], %f {in_bounds = [true]} : memref<4096xf32>, vector<4096xf32>
    %z = arith.mulf %y, %w : vector<4096xf32>
    %u = vector.transfer_read %t[%chosen], %f {in_bounds = [true]} : memref<8192xf32>, vector<4096xf32>
    %v = arith.addf %z, %u : vector<4096xf32>
    vector.transfer_write %v, %o[%i, %c0] {in_bounds = [true]} : vector<4096xf32>, memref<64x4096xf32>
  }
  return
}

// -----

// Reads that fill too many registers together stay where they are used.
// CHECK-LABEL: func.func @wide(
// CHECK: vector.multi_reduction
// CHECK: vector.transfer_read %arg1
func.func @wide(%x: memref<64x4096xf32>, %s: memref<4096xf32>, %o: memref<64x4096xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (64) {
    %a = vector.transfer_read %x[%i, %c0], %f {in_bounds = [true]} : memref<64x4096xf32>, vector<4096xf32>
    %r = vector.multi_reduction <add>, %a, %f [0] : vector<4096xf32> to f32
    %b = vector.broadcast %r : f32 to vector<4096xf32>
    %w = vector.transfer_read %s[%c0], %f {in_bounds = [true]} : memref<4096xf32>, vector<4096xf32>
    %z = arith.mulf %b, %w : vector<4096xf32>
    vector.transfer_write %z, %o[%i, %c0] {in_bounds = [true]} : vector<4096xf32>, memref<64x4096xf32>
  }
  return
}

// -----

// The mask of a read goes ahead with it.
// CHECK-LABEL: func.func @masked(
// CHECK: vector.transfer_read %arg0
// CHECK: %[[REST:.*]] = arith.subi %arg3, %c8
// CHECK: %[[MASK:.*]] = vector.create_mask %[[REST]]
// CHECK: vector.transfer_read %arg1[%c0], %{{.*}}, %[[MASK]]
// CHECK: vector.multi_reduction
func.func @masked(%x: memref<64x4096xf32>, %s: memref<?xf32>, %o: memref<64x4096xf32>, %n: index) attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["64", "4096"], ["d0"], ["64", "4096"]], xcc.config = {gpu = {threads = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (64) {
    %a = vector.transfer_read %x[%i, %c0], %f {in_bounds = [true]} : memref<64x4096xf32>, vector<4096xf32>
    %r = vector.multi_reduction <add>, %a, %f [0] : vector<4096xf32> to f32
    %b = vector.broadcast %r : f32 to vector<4096xf32>
    %y = arith.subf %a, %b : vector<4096xf32>
    %rest = arith.subi %n, %c8 : index
    %m = vector.create_mask %rest : vector<4096xi1>
    %w = vector.transfer_read %s[%c0], %f, %m {in_bounds = [true]} : memref<?xf32>, vector<4096xf32>
    %z = arith.mulf %y, %w : vector<4096xf32>
    vector.transfer_write %z, %o[%i, %c0] {in_bounds = [true]} : vector<4096xf32>, memref<64x4096xf32>
  }
  return
}

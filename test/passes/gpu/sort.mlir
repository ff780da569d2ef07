// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s

// 36 steps, in each of which the eight registers of a thread are four pairs.
// CHECK-LABEL: gpu.func @words(
// CHECK-COUNT-144: arith.minsi
// CHECK-NOT: arith.minsi
// CHECK: gpu.return
func.func @words(%x: memref<1x256xi32>, %o: memref<1x256xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<1x256xi32>, vector<1x256xi32>
    %s = "tile.sort"(%a) : (vector<1x256xi32>) -> vector<1x256xi32>
    vector.transfer_write %s, %o[%c0, %c0] {in_bounds = [true, true]} : vector<1x256xi32>, memref<1x256xi32>
  }
  return
}

// Two elements of each of 64 rows: one comparison of two words.
// CHECK-LABEL: gpu.func @pairs(
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi eq
// CHECK-COUNT-2: arith.select
// CHECK-NOT: arith.cmpi eq
// CHECK: gpu.return
func.func @pairs(%x: memref<64x2xi64>, %o: memref<64x2xi64>, %m: memref<64x2xi32>, %p: memref<64x2xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x2xi64>, vector<64x2xi64>
    %none = arith.constant 0 : i32
    %n = vector.transfer_read %m[%c0, %c0], %none {in_bounds = [true, true]} : memref<64x2xi32>, vector<64x2xi32>
    %s:2 = "tile.sort"(%a, %n) : (vector<64x2xi64>, vector<64x2xi32>) -> (vector<64x2xi64>, vector<64x2xi32>)
    vector.transfer_write %s#0, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x2xi64>, memref<64x2xi64>
    vector.transfer_write %s#1, %p[%c0, %c0] {in_bounds = [true, true]} : vector<64x2xi32>, memref<64x2xi32>
  }
  return
}

// Of 64 elements 4 are kept: 3 steps of all, then halves merge: 1 + 2 steps of 32, of 16, of 8 and of 4 that are left.
// CHECK-LABEL: gpu.func @least(
// CHECK-COUNT-3: arith.minsi
// CHECK: memref<1x4xi32>
// CHECK: gpu.return
func.func @least(%x: memref<1x64xi32>, %o: memref<1x4xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<1x64xi32>, vector<1x64xi32>
    %s = "tile.sort"(%a) {keep = 4 : i64} : (vector<1x64xi32>) -> vector<1x4xi32>
    vector.transfer_write %s, %o[%c0, %c0] {in_bounds = [true, true]} : vector<1x4xi32>, memref<1x4xi32>
  }
  return
}

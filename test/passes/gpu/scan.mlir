// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s

// A thread has four neighbours, then come lanes (five shuffles of the totals) and two warps (shared memory).
// CHECK-LABEL: gpu.func @row(
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: vector.store {{.*}} vector<4xf32>
func.func @row(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    %s = vector.broadcast %zero : f32 to vector<1xf32>
    %y, %t = vector.scan <add>, %a, %s {inclusive = true, reduction_dim = 1 : i64} : vector<1x256xf32>, vector<1xf32>
    vector.transfer_write %y, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
  }
  return
}

// The total of a scan is its row's sum: no step of lanes beyond the five of two groups of neighbours. What lies before a group is added
// to it, and to its four elements at the end: 14 sums behind the last step.
// CHECK-LABEL: gpu.func @total(
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK-COUNT-14: arith.addf
// CHECK-NOT: arith.addf
// CHECK: gpu.return
func.func @total(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %sums: memref<?xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x256xf32>, vector<1x256xf32>
    %s = arith.constant dense<-0.0> : vector<1xf32>
    %y, %t = vector.scan <add>, %a, %s {inclusive = true, reduction_dim = 1 : i64} : vector<1x256xf32>, vector<1xf32>
    vector.transfer_write %y, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x256xf32>, memref<?x256xf32>
    %r = vector.multi_reduction <add>, %a, %s [1] : vector<1x256xf32> to vector<1xf32>
    vector.transfer_write %r, %sums[%i] {in_bounds = [true]} : vector<1xf32>, memref<?xf32>
  }
  return
}

// Rows that fit a warp need no shared memory.
// CHECK-LABEL: gpu.func @short(
// CHECK-NOT: gpu.barrier
// CHECK-NOT: gpu.shuffle idx
// CHECK: gpu.return
func.func @short(%x: memref<2x128xi32>, %o: memref<2x128xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<2x128xi32>, vector<2x128xi32>
    %s = vector.broadcast %zero : i32 to vector<2xi32>
    %y, %t = vector.scan <maxsi>, %a, %s {inclusive = false, reduction_dim = 1 : i64, xcc.reverse} : vector<2x128xi32>, vector<2xi32>
    vector.transfer_write %y, %o[%c0, %c0] {in_bounds = [true, true]} : vector<2x128xi32>, memref<2x128xi32>
  }
  return
}

// Of f16 a thread reads eight, which it has in the scan of f32, too.
// CHECK-LABEL: gpu.func @widened(
// CHECK: vector.load {{.*}} vector<8xf16>
// CHECK-NOT: gpu.barrier
// CHECK: vector.store {{.*}} vector<8xf16>
func.func @widened(%x: memref<?x512xf16>, %o: memref<?x512xf16>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x512xf16>, vector<1x512xf16>
    %w = arith.extf %a : vector<1x512xf16> to vector<1x512xf32>
    %s = arith.constant dense<0.0> : vector<1xf32>
    %y, %t = vector.scan <add>, %w, %s {inclusive = true, reduction_dim = 1 : i64} : vector<1x512xf32>, vector<1xf32>
    %n = arith.truncf %y : vector<1x512xf32> to vector<1x512xf16>
    vector.transfer_write %n, %o[%i, %c0] {in_bounds = [true, true]} : vector<1x512xf16>, memref<?x512xf16>
  }
  return
}

// Along rows, whose columns lie together: four neighbours a thread, two lanes of them (a sector) beside each other, and two
// warps; the other lanes, and two neighbours of a thread, are rows: four shuffles of four totals.
// CHECK-LABEL: gpu.func @columns(
// CHECK-COUNT-2: vector.load {{.*}} vector<4xf32>
// CHECK-COUNT-16: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-2: vector.store {{.*}} vector<4xf32>
func.func @columns(%x: memref<?x16xf32>, %o: memref<?x16xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (%d0) step (32) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<?x16xf32>, vector<32x16xf32>
    %s = vector.broadcast %zero : f32 to vector<16xf32>
    %y, %t = vector.scan <add>, %a, %s {inclusive = true, reduction_dim = 0 : i64} : vector<32x16xf32>, vector<16xf32>
    vector.transfer_write %y, %o[%i, %c0] {in_bounds = [true, true]} : vector<32x16xf32>, memref<?x16xf32>
  }
  return
}

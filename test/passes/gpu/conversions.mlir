// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=assign-layouts --split-input-file | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s --check-prefix=CODE

// Two uses in one layout share a conversion, and what is turned twice has none.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[A:.*]] = vector.transfer_read
// CHECK: %[[C:.*]] = builtin.unrealized_conversion_cast %[[A]]
// CHECK-NOT: unrealized_conversion_cast
// CHECK: return
// CODE-LABEL: gpu.func @shared(
// CODE-SAME: xcc.shared_bytes = 4096
// CODE-COUNT-1: gpu.barrier
// CODE-NOT: gpu.barrier
// CODE: gpu.return
func.func @shared(%x: memref<?x33xf32>, %o: memref<?x33xf32>, %p: memref<?x33xf32>, %q: memref<?x33xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<?x33xf32>, vector<32x32xf32>
    %t = vector.transpose %a, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    vector.transfer_write %t, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
    vector.transfer_write %t, %p[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
    %u = vector.transpose %t, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    vector.transfer_write %u, %q[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
  }
  return
}

// -----

// Conversions that follow each other use the same bytes; a barrier says that the first was read.
// CHECK-LABEL: func.func @in_turn(
// CHECK-COUNT-2: unrealized_conversion_cast
// CODE-LABEL: gpu.func @in_turn(
// CODE-SAME: xcc.shared_bytes = 4096
// CODE-COUNT-3: gpu.barrier
// CODE-NOT: gpu.barrier
// CODE: gpu.return
func.func @in_turn(%x: memref<?x33xf32>, %y: memref<?x33xf32>, %o: memref<?x33xf32>, %p: memref<?x33xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<?x33xf32>, vector<32x32xf32>
    %t = vector.transpose %a, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    vector.transfer_write %t, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
    %b = vector.transfer_read %y[%c0, %c0], %pad {in_bounds = [true, true]} : memref<?x33xf32>, vector<32x32xf32>
    %u = vector.transpose %b, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    vector.transfer_write %u, %p[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
  }
  return
}

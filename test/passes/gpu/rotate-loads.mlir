// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=rotate-loads, mlir(canonicalize, cse)" --split-input-file | filecheck %s

// The first step's elements are read ahead of the loop, the next step's at the top of the body, where there is one; the mask of
// the store stays as it was.
// CHECK-LABEL: func.func @running(
// CHECK: %[[FIRST:.*]] = vector.transfer_read %arg0
// CHECK: scf.for %[[K:.*]] = %c0 to %[[N:.*]] step %c256 iter_args(%[[SUM:.*]] = %{{.*}}, %[[NOW:.*]] = %[[FIRST]])
// CHECK: %[[AFTER:.*]] = arith.addi %[[K]], %c256
// CHECK: %[[REST:.*]] = arith.subi %[[N]], %[[AFTER]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[AFTER]], %[[N]]
// CHECK: %[[SIZE:.*]] = arith.select %[[INSIDE]], %[[REST]], %c0
// CHECK: %[[MASK:.*]] = vector.create_mask %[[SIZE]]
// CHECK: %[[LATER:.*]] = vector.transfer_read %arg0[%{{.*}}, %[[AFTER]]], %{{.*}}, %[[MASK]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[NOW]]
// CHECK: vector.transfer_write %[[NEXT]]
// CHECK: scf.yield %[[NEXT]], %[[LATER]]
func.func @running(%x: memref<?x?xf32>, %o: memref<?x?xf32>, %m: index, %n: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xcc.config = {gpu = {threads = 32 : i64, stages = 2 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<256xf32>
  scf.forall (%i) in (%m) {
    %r = scf.for %k = %c0 to %n step %c256 iter_args(%sum = %zero) -> (vector<256xf32>) {
      %rest = arith.subi %n, %k : index
      %mask = vector.create_mask %rest : vector<256xi1>
      %t = vector.transfer_read %x[%i, %k], %f, %mask {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
      %s = arith.addf %sum, %t : vector<256xf32>
      vector.transfer_write %s, %o[%i, %k], %mask {in_bounds = [true]} : vector<256xf32>, memref<?x?xf32>
      scf.yield %s : vector<256xf32>
    }
  }
  return
}

// -----

// Not what the loop writes to, what a step before decides, and what may lie outside of the array; nor without stages.
// CHECK-LABEL: func.func @kept(
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %c0)
// CHECK-COUNT-3: vector.transfer_read
// CHECK-NOT: vector.transfer_read
func.func @kept(%x: memref<?x?xf32>, %o: memref<?x?xf32>, %m: index, %n: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xcc.config = {gpu = {threads = 32 : i64, stages = 2 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (%m) {
    %r = scf.for %k = %c0 to %n step %c256 iter_args(%at = %c0) -> (index) {
      %rest = arith.subi %n, %k : index
      %mask = vector.create_mask %rest : vector<256xi1>
      %a = vector.transfer_read %o[%i, %k], %f, %mask {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
      %b = vector.transfer_read %x[%at, %k], %f, %mask {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
      %c = vector.transfer_read %x[%i, %k], %f {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
      %s = arith.addf %a, %b : vector<256xf32>
      %t = arith.addf %s, %c : vector<256xf32>
      vector.transfer_write %t, %o[%i, %k], %mask {in_bounds = [true]} : vector<256xf32>, memref<?x?xf32>
      %next = arith.addi %at, %i : index
      scf.yield %next : index
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @one_stage(
// CHECK-NOT: vector.transfer_read
// CHECK: scf.for
func.func @one_stage(%x: memref<?x?xf32>, %o: memref<?xf32>, %m: index, %n: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<256xf32>
  scf.forall (%i) in (%m) {
    %r = scf.for %k = %c0 to %n step %c256 iter_args(%sum = %zero) -> (vector<256xf32>) {
      %rest = arith.subi %n, %k : index
      %mask = vector.create_mask %rest : vector<256xi1>
      %t = vector.transfer_read %x[%i, %k], %f, %mask {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
      %s = arith.addf %sum, %t : vector<256xf32>
      scf.yield %s : vector<256xf32>
    }
    vector.transfer_write %r, %o[%c0] {in_bounds = [true]} : vector<256xf32>, memref<?xf32>
  }
  return
}

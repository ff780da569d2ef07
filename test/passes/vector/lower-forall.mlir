// RUN: %xcc_opt %s --pass-pipeline="lower-forall" | filecheck %s

// CHECK: llvm.func @xcc_parallel(!llvm.ptr, !llvm.ptr, i64)

// CHECK-LABEL: func.func @parallel
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[WORKER:.*]] = llvm.mlir.addressof @parallel__p0
// CHECK: llvm.call @xcc_parallel(%[[WORKER]], %[[SLOTS]], {{.*}})
func.func @parallel(%x: !llvm.ptr, %n: i64) attributes {xt.kernel} {
  %size = arith.index_cast %n : i64 to index
  scf.forall (%i, %j) in (%size, 2) {
    %k = arith.addi %i, %j : index
    %v = arith.index_cast %k : index to i64
    llvm.store %v, %x : i64, !llvm.ptr
  } {xcc.parallel}
  return
}

// CHECK-LABEL: func.func @serial
// CHECK: scf.for
// CHECK: scf.for
func.func @serial(%x: !llvm.ptr) attributes {xt.kernel} {
  scf.forall (%i, %j) = (0, 0) to (9, 4) step (3, 2) {
    %v = arith.index_cast %i : index to i64
    llvm.store %v, %x : i64, !llvm.ptr
  }
  return
}

// CHECK: llvm.func @parallel__p0(%[[S:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK: llvm.load
// CHECK: scf.for
// CHECK: arith.remui
// CHECK: llvm.store

// Copies in a program of blocks stay loops.
// CHECK-LABEL: llvm.func @blocks__p0(
// CHECK-SAME: passthrough = ["no-builtin-memcpy"]
func.func @blocks(%n: i64) attributes {xcc.machine} {
  %end = arith.index_cast %n : i64 to index
  scf.forall (%i) in (%end) {
  } {xcc.parallel}
  return
}

// RUN: %xcc_opt %s --pass-pipeline="join-sizes" | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="join-sizes, kernel-abi, lower-forall" | filecheck %s --check-prefix=POOL

// CHECK-LABEL: func.func @k(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index) attributes {xt.kernel, xt.symbols = ["d0"]}
// CHECK: arith.floordivsi %[[N]]
// CHECK: %[[FEW:.*]] = arith.cmpi ne
// CHECK: scf.if %[[FEW]] {
// CHECK: arith.constant 1.0
// CHECK: scf.forall {{.*}} in (2)
// CHECK: } else {
// CHECK: arith.constant 2.0
// CHECK: scf.forall {{.*}} in (%[[N]])
// CHECK-NOT: func.func

// Both branches go by the pool.
// POOL-LABEL: func.func @k(
// POOL: scf.if
// POOL: llvm.mlir.addressof @k__p0
// POOL: } else {
// POOL: llvm.mlir.addressof @k__p1
func.func @k(%x: memref<?xf32>, %n: index) attributes {xt.kernel, xt.symbols = ["d0"],
                                                      xcc.launched = "min(1, floordiv(d0, 24))"} {
  %two = arith.constant 2.0 : f32
  scf.forall (%i) in (%n) {
    memref.store %two, %x[%i] : memref<?xf32>
  } {xcc.parallel}
  return
}

func.func @k_few(%x: memref<?xf32>, %n: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.of = "k",
                                                          xcc.launched = "1 - min(1, floordiv(d0, 24))"} {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (2) {
    memref.store %one, %x[%i] : memref<?xf32>
  } {xcc.parallel}
  return
}

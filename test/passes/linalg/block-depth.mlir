// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="block-depth" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, block-depth, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.depth = 64 : i64
// CHECK: linalg.generic
// CHECK-NOT: xcc.depth
// CHECK-SAME: outs

// The first block's sums are stored, those of the others added to what is there, the last is followed by the epilogue.
// LOOPS: scf.forall
// LOOPS: scf.for %{{.*}} = %c0 to %c64 step %c1
// LOOPS-NOT: arith.maximumf
// LOOPS: vector.transfer_write
// LOOPS: scf.for %{{.*}} = %c64 to %c128 step %c16
// LOOPS-NOT: arith.maximumf
// LOOPS: scf.for %{{.*}} = %c128 to %c192 step %c16
// LOOPS: arith.maximumf

// PLAIN: scf.for %{{.*}} = %c0 to %c192 step %c1 iter_args
// PLAIN: math.fma
// PLAIN: arith.maximumf

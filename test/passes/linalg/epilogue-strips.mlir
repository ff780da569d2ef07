// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="epilogue-strips{rows=2}" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, epilogue-strips{rows=2}, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, epilogue-strips, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.strips = 2 : i64

// The sums wait on the stack; the epilogue takes two rows of them at a time.
// LOOPS: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<4x32xf32>
// LOOPS: vector.transfer_write %{{.*}}, %[[SUMS]]
// LOOPS: scf.for %{{.*}} = %c0 to %c4 step %c2
// LOOPS: vector.transfer_read %[[SUMS]]
// LOOPS: arith.maximumf %{{.*}} : vector<2x32xf32>

// PLAIN-NOT: memref.alloca
// PLAIN: arith.maximumf %{{.*}} : vector<4x32xf32>

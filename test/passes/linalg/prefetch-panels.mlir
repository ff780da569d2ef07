// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="prefetch-panels" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, prefetch-panels, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.prefetch = 16 : i64, xcc.shares = 2 : i64

// The row 16 steps further on, into the first cache, and half of the next panel, into the second.
// LOOPS: scf.for %[[K:.*]] = %c0 to %c192 step %c1
// LOOPS: %[[ROW:.*]] = arith.addi %[[K]], %c16
// LOOPS-COUNT-2: memref.prefetch %{{.*}}[%{{.*}}, %[[ROW]], %{{.*}}], read, locality<3>
// LOOPS: memref.prefetch %{{.*}}, read, locality<2>

// PLAIN-NOT: memref.prefetch

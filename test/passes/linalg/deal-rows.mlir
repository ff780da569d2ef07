// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="deal-rows" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, deal-rows, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: func.func private @k
// CHECK-SAME: xcc.parts = 2 : i64

// Two parts of three tiles of rows each; each walks the columns, and for each of them its two chunks of rows.
// LOOPS: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 64, 2) step (1, 32, 1)

// PLAIN: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (20, 64) step (8, 32)

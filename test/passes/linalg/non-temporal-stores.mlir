// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="non-temporal-stores" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, non-temporal-stores, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: func.func private @k
// CHECK-SAME: xcc.stream

// LOOPS: vector.transfer_write {{.*}}xcc.stream

// PLAIN: vector.transfer_write
// PLAIN-NOT: xcc.stream

// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="prefetch-inputs" | filecheck %s
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, prefetch-inputs, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: func.func private @k
// CHECK-SAME: xcc.ahead = 96 : i64

// LOOPS: func.func private @k(
// LOOPS: arith.divf
// LOOPS: memref.prefetch

// PLAIN-NOT: memref.prefetch

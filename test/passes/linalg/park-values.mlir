// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="park-values" | filecheck %s
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, park-values, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK-SAME: xcc.parked
// CHECK: math.exp
// CHECK-NOT: xcc.parked

// LOOPS: func.func private @k(%{{.*}}: memref<100x97xf32>, %[[OUT:.*]]: memref<100x97xf32>)
// LOOPS: math.exp
// LOOPS: vector.transfer_write %{{.*}}, %[[OUT]]
// LOOPS: math.exp
// LOOPS: vector.transfer_write %{{.*}}, %[[OUT]]
// LOOPS-NOT: math.exp
// LOOPS: vector.transfer_read %[[OUT]]
// LOOPS: arith.divf

// PLAIN: math.exp
// PLAIN: math.exp
// PLAIN: arith.divf

// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails" | filecheck %s
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: func.func private @k
// CHECK-SAME: xcc.peeled

// Three whole vectors, and one with a lane on.
// LOOPS-NOT: xcc.peeled
// LOOPS: scf.for %{{.*}} = %c0 to %c96 step %c32
// LOOPS-NOT: vector.constant_mask
// LOOPS: vector.transfer_read %{{.*}} : memref<100x97xf32>, vector<32xf32>
// LOOPS: vector.constant_mask

// PLAIN: scf.for %[[AT:.*]] = %c0 to %c97 step %c32
// PLAIN: %[[LEFT:.*]] = arith.subi %c97, %[[AT]]
// PLAIN: %[[ON:.*]] = arith.minsi %[[LEFT]], %c32
// PLAIN: vector.create_mask %[[ON]] : vector<32xi1>

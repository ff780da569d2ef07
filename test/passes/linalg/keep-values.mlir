// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="keep-values" | filecheck %s
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, keep-values, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/softmax.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK-SAME: xcc.kept = {order = array<i64: 0>, vector = array<i64: 1>}
// CHECK-NOT: xcc.kept

// The maxima of a chunk's rows come first.
// LOOPS: %[[KEPT:.*]] = memref.alloca() {{.*}}: memref<8xf32>
// LOOPS: scf.for
// LOOPS: memref.store %{{.*}}, %[[KEPT]]
// LOOPS: scf.for
// LOOPS: memref.load %[[KEPT]]
// LOOPS: math.exp

// PLAIN-NOT: memref.alloca

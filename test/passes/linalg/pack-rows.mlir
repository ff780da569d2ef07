// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="pack-rows" | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, pack-rows, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %S/Inputs/product.mlir --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.packed

// LOOPS: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<8x208xf32>
// LOOPS: vector.transfer_write %{{.*}}, %[[ROWS]]
// LOOPS: vector.transfer_read %[[ROWS]]

// PLAIN-NOT: memref.alloca

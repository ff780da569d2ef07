// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --split-input-file | filecheck %s

// The box alone: nothing is read of what it is written into.
// CHECK-LABEL: func.func private @box(
// CHECK-SAME: %[[X:.*]]: memref<8x4xf32>, %[[U:.*]]: memref<2x4xf32>, %{{.*}}: memref<i64>, %{{.*}}: memref<i64>, %[[Y:.*]]: memref<8x4xf32>)
// CHECK-NOT: memref.load %[[X]]
// CHECK: scf.forall (%{{.*}}) in (2)
// CHECK: %[[E:.*]] = memref.load %[[U]]
// CHECK: memref.store %[[E]], %[[Y]]
// CHECK-NOT: memref.load %[[X]]
func.func private @box(%x: tensor<8x4xf32>, %u: tensor<2x4xf32>, %i: tensor<i64>, %j: tensor<i64>) -> tensor<8x4xf32> attributes {xt.kernel} {
  %y = "xt.dynamic_update_slice"(%x, %u, %i, %j) {xt.in_place} : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func.func private @rows(
// CHECK-COUNT-1: scf.forall
// CHECK-NOT: scf.forall
func.func private @rows(%x: tensor<8x4xf32>, %i: tensor<2x1xi64>, %u: tensor<2x4xf32>) -> tensor<8x4xf32> attributes {xt.kernel} {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "add", xt.in_place} : (tensor<8x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

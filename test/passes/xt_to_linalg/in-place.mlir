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

// -----
// A box at a constant place is computed in tiles, like any result, and stored there. What it is put into is memory that
// holds it already, or, of one value, memory that nobody reads.

// CHECK-LABEL: func.func private @fixed(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[U:.*]]: tensor<2x4xf32>)
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[U]] : tensor<2x4xf32>)
// CHECK: %[[Y:.*]] = tensor.insert_slice %[[E]] into %[[X]][3, 0] [2, 4] [1, 1]
// CHECK: return %[[Y]]
func.func private @fixed(%x: tensor<8x4xf32>, %u: tensor<2x4xf32>) -> tensor<8x4xf32> attributes {xt.kernel} {
  %i = "xt.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %j = "xt.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %y = "xt.dynamic_update_slice"(%x, %u, %i, %j) {xt.in_place} : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func private @placed(
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: %[[W:.*]] = tensor.empty() : tensor<8x4xf32>
// CHECK: %[[Y:.*]] = tensor.insert_slice %[[E]] into %[[W]][3, 0] [2, 4] [1, 1]
// CHECK: return %[[Y]]
func.func private @placed(%u: tensor<2x4xf32>) -> tensor<8x4xf32> attributes {xt.kernel} {
  %x = "xt.constant"() {value = dense<0.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32>
  %i = "xt.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %j = "xt.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %v = "xt.exp"(%u) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = "xt.dynamic_update_slice"(%x, %v, %i, %j) {xt.in_place} : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

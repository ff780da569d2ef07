// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// Data indices wrap once when negative and are clamped: a read is always in bounds.
// CHECK-LABEL: func.func private @gather
// CHECK-SAME: %[[X:.*]]: tensor<9x4xf32>, %[[AT:.*]]: tensor<3xi64>
func.func private @gather(%x: tensor<9x4xf32>, %at: tensor<3xi64>) -> tensor<3x4xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: linalg.generic {{.*}} ins(%[[AT]] : tensor<3xi64>)
  // CHECK: %[[I:.*]] = arith.index_cast
  // CHECK: arith.select
  // CHECK: arith.minsi
  // CHECK: %[[ROW:.*]] = arith.maxsi
  // CHECK: tensor.extract %[[X]][%[[ROW]], %{{.*}}]
  %0 = "xt.gather"(%x, %at) {axis = 0, batch_dims = 0} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func private @concatenate
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<3xf32>
func.func private @concatenate(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<5xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[A:.*]] = tensor.extract %[[X]]
  // CHECK: %[[B:.*]] = tensor.extract %[[Y]]
  // CHECK: %[[SECOND:.*]] = arith.cmpi sge
  // CHECK: arith.select %[[SECOND]], %[[B]], %[[A]]
  %0 = "xtv.concatenate"(%x, %y) {axis = 0} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// A pooling window is in no operand: an empty one states its size.
// CHECK-LABEL: func.func private @pool
func.func private @pool(%x: tensor<8xf32>) -> tensor<6xf32> attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[WINDOW:.*]] = tensor.empty() : tensor<3xi8>
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}}, %[[WINDOW]] : tensor<8xf32>, tensor<3xi8>)
  %0 = "xt.reduce_window"(%x) {kind = "max", window = [3], strides = [1], low = [0], high = [0], dilations = [1]}
      : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

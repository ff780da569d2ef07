// RUN: %xcc_opt %s --pass-pipeline="fold-scales" --verify-each | filecheck %s

// CHECK-LABEL: func.func @factor_and_terms(
// CHECK: %[[F:.*]] = "xt.reshape"(%{{.*}}) {shape = [1, 4]}
// CHECK: %[[W:.*]] = "xt.mul"(%{{.*}}, %[[F]]) : (tensor<3x4xf32>
// CHECK: %[[Y:.*]] = "xt.dot_general"(%{{.*}}, %[[W]])
// CHECK: %[[B:.*]] = "xt.add"(%{{.*}}, %{{.*}}) : (tensor<4xf32>
// CHECK: %[[R:.*]] = "xt.add"(%[[Y]], %[[B]])
// CHECK: return %[[R]]
func.func @factor_and_terms(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x4xf32>
  %s = "xt.weight"() {name = "s"} : () -> tensor<4xf32>
  %b = "xt.weight"() {name = "b"} : () -> tensor<4xf32>
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = "xt.add"(%0, %b) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %2 = "xt.mul"(%1, %s) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %3 = "xt.add"(%2, %b) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// A factor that differs along another dim than the outputs stays.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[Y:.*]] = "xt.dot_general"
// CHECK: %[[R:.*]] = "xt.mul"(%[[Y]]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<4x3xf32>) -> tensor<4x4xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x4xf32>
  %s = "xt.weight"() {name = "s"} : () -> tensor<4x1xf32>
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %1 = "xt.mul"(%0, %s) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

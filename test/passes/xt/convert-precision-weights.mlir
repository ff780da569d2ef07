// RUN: %xcc_opt %s --pass-pipeline="convert-precision{type=f16 weights=true}" | filecheck %s

// The weight of a product alone is narrow: what it is multiplied with, the sums and everything else stay f32.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK: %[[W:.*]] = "xt.weight"() {name = "w.f16"} {{.*}} -> tensor<8x8xf16>
// CHECK: %[[B:.*]] = "xt.weight"() {name = "b"} {{.*}} -> tensor<8xf32>
// CHECK: %[[Y:.*]] = "xt.dot_general"(%[[X]], %[[W]]) {{.*}} : (tensor<4x8xf32>, tensor<8x8xf16>) -> tensor<4x8xf32>
// CHECK: "xt.add"(%[[Y]], %[[B]]) {{.*}} -> tensor<4x8xf32>
// CHECK-NOT: f16
// CHECK: return
func.func @product(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<8x8xf32>
  %b = "xt.weight"() {name = "b"} : () -> tensor<8xf32>
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = "xt.add"(%y, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// RUN: %xcc_opt %s --pass-pipeline="form-kernels{prologue=broadcast,widen}" | filecheck %s

// The narrow form that a product reads is a second result of the kernel that computes the wide one.
// CHECK-LABEL: func.func @main(
// CHECK: %[[E:.*]]:2 = "xtv.dispatch"(%{{.*}}) {kernel = @[[WIDE:[a-z_0-9]+]], {{.*}} -> (tensor<4x8xf32>, tensor<4x8xf16>)
// CHECK: "xtv.dispatch"(%[[E]]#1, %{{.*}}) {kernel = @[[PRODUCT:[a-z_0-9]+]], {{.*}} -> tensor<4x8xf16>
// CHECK: func.func private @[[WIDE]](
// CHECK: "xt.exp"
// CHECK: "xt.convert"
// CHECK: func.func private @[[PRODUCT]](
// CHECK-NEXT: "xt.dot_general"
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf16>) -> (tensor<4x8xf32>, tensor<4x8xf16>) {
  %e = "xt.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %h = "xt.convert"(%e) {dtype = f16, saturate = false} : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %y = "xt.dot_general"(%h, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16>
  return %e, %y : tensor<4x8xf32>, tensor<4x8xf16>
}

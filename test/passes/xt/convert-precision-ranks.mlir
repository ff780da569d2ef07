// Ranks exchange narrow results of products; sums that were wide stay so among ranks.
// RUN: %xcc_opt %s --pass-pipeline='convert-precision{type=f16}' --target=nvptx --chip=sm_90a | filecheck %s

// CHECK: %[[P:.*]] = "xt.dot_general"{{.*}} -> tensor<16x64xf16>
// CHECK: %[[R:.*]] = "xt.all_reduce"(%[[P]]) {{.*}} : (tensor<16x64xf16>)
// CHECK: %[[S:.*]] = "xt.reduce"{{.*}} -> tensor<16xf32>
// CHECK: "xt.all_reduce"(%[[S]]) {{.*}} : (tensor<16xf32>)
module attributes {xt.mesh = [["tp", 2]]} {
  func.func @main(%x: tensor<16x32xf32>) -> (tensor<16x64xf32>, tensor<16xf32>) {
    %w = "xt.weight"() {name = "w"} : () -> tensor<32x64xf32>
    %p = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
    %r = "xt.all_reduce"(%p) {axes = ["tp"], combine = "add"} : (tensor<16x64xf32>) -> tensor<16x64xf32>
    %y = "xt.softmax"(%r) {axis = 1 : i64} : (tensor<16x64xf32>) -> tensor<16x64xf32>
    %s = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "sum"} : (tensor<16x32xf32>) -> tensor<16xf32>
    %t = "xt.all_reduce"(%s) {axes = ["tp"], combine = "add"} : (tensor<16xf32>) -> tensor<16xf32>
    return %y, %t : tensor<16x64xf32>, tensor<16xf32>
  }
}

// RUN: %xcc_opt %s --pass-pipeline="form-kernels" | filecheck %s

// Batches of a product with panels, scaled and added up, are one kernel; what follows is of the sum's elements.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: "xtv.dispatch"
// CHECK-NOT: "xtv.dispatch"
// CHECK: func.func private @packed_matmul_0(
// CHECK: "xt.packed_matmul"
// CHECK: "xt.reduce"
// CHECK: "xt.tanh"
func.func @main(%x: tensor<16x5x16xi8>, %w: tensor<2x16x4x32x4xui8>, %s: tensor<16x1x64xf32>) -> tensor<5x64xf32> {
  %p = "xt.packed_matmul"(%x, %w) {batch = 1 : i64, columns = [64], dtype = i32, panels_first = true} : (tensor<16x5x16xi8>, tensor<2x16x4x32x4xui8>) -> tensor<16x5x64xi32>
  %f = "xt.convert"(%p) {dtype = f32, saturate = false} : (tensor<16x5x64xi32>) -> tensor<16x5x64xf32>
  %m = "xt.mul"(%f, %s) : (tensor<16x5x64xf32>, tensor<16x1x64xf32>) -> tensor<16x5x64xf32>
  %y = "xt.reduce"(%m) {axes = [0], keepdims = false, kind = "sum"} : (tensor<16x5x64xf32>) -> tensor<5x64xf32>
  %t = "xt.tanh"(%y) : (tensor<5x64xf32>) -> tensor<5x64xf32>
  return %t : tensor<5x64xf32>
}

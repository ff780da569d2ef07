// RUN: %xcc_opt %s --pass-pipeline="form-kernels" | filecheck %s

// The second kernel finds its numbers where the first one needed them: they are one kernel all the same, in which a
// number stands before what reads it.
// CHECK-LABEL: func.func @main(
// CHECK: kernel = @reduce_0
// CHECK: kernel = @reduce_0
// CHECK-LABEL: func.func private @reduce_0(
// CHECK: "xt.exp"
// CHECK-NEXT: %[[A:.*]] = "xt.constant"() {value = dense<2.000000e+00>
// CHECK-NEXT: "xt.mul"(%{{.*}}, %[[A]])
// CHECK-NEXT: %[[B:.*]] = "xt.constant"() {value = dense<3.000000e+00>
// CHECK-NEXT: "xt.add"(%{{.*}}, %[[B]])
func.func @main(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> (tensor<8x1xf32>, tensor<8x1xf32>) {
  %0 = "xt.exp"(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %1 = "xt.mul"(%0, %a) : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %b = "xt.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %2 = "xt.add"(%1, %b) : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %3 = "xt.reduce"(%2) {axes = [1], keepdims = true, kind = "sum"} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %5 = "xt.exp"(%y) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %6 = "xt.mul"(%5, %a) : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %7 = "xt.add"(%6, %b) : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  %8 = "xt.reduce"(%7) {axes = [1], keepdims = true, kind = "sum"} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  return %3, %8 : tensor<8x1xf32>, tensor<8x1xf32>
}

// RUN: %xcc_opt %s --pass-pipeline=split-beside | filecheck %s

// Each part keeps its own ops and arguments, what both use, and all symbols.
// CHECK-NOT: @beside_0(
// CHECK-LABEL: func.func private @beside_0__0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK-SAME: xcc.part = {args = array<i64: 0>, of = "beside_0", results = array<i64: 1>}
// CHECK-SAME: xt.symbols = ["d0"]
// CHECK: xt.constant
// CHECK: %[[A:.*]] = "xt.add"(%[[X]],
// CHECK-NOT: xt.mul
// CHECK: return %[[A]]
// CHECK-LABEL: func.func private @beside_0__1(
// CHECK-SAME: xcc.part = {args = array<i64: 1>, of = "beside_0", results = array<i64: 0>}
// CHECK: xt.constant
// CHECK-NOT: xt.add
// CHECK: "xt.mul"
func.func private @beside_0(%x: tensor<8xf32>, %y: tensor<?x6xf32, ["d0", 6]>) -> (tensor<?x6xf32, ["d0", 6]>, tensor<8xf32>)
    attributes {xt.kernel, xt.parts = array<i64: 1, 0>, xt.symbols = ["d0"]} {
  %c = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.add"(%x, %c) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %b = "xt.mul"(%y, %c) : (tensor<?x6xf32, ["d0", 6]>, tensor<f32>) -> tensor<?x6xf32, ["d0", 6]>
  return %b, %a : tensor<?x6xf32, ["d0", 6]>, tensor<8xf32>
}

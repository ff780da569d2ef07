// RUN: %xcc_opt %s --pass-pipeline="split-groups" --verify-each | filecheck %s

// CHECK-LABEL: func.func @symbols(
// CHECK: "xt.slice"(%arg0) {limits = ["n", "c", 4, 4], starts = [0, 0, 0, 0]
// CHECK: "xt.slice"(%arg1) {limits = ["floordiv(o, 2)", "c", 1, 1]
// CHECK: %[[A:.*]] = "xt.convolution"({{.*}} groups = 1
// CHECK: "xt.slice"(%arg0) {limits = ["n", "2*c", 4, 4], starts = [0, "c", 0, 0]
// CHECK: %[[B:.*]] = "xt.convolution"({{.*}} groups = 1
// CHECK: "xtv.concatenate"(%[[A]], %[[B]]) {axis = 1
func.func @symbols(%x: tensor<?x?x4x4xf32, ["n", "2*c", 4, 4]>, %w: tensor<?x?x1x1xf32, ["o", "c", 1, 1]>) -> tensor<?x?x4x4xf32, ["n", "o", 4, 4]> {
  %y = "xt.convolution"(%x, %w) {dtype = f32, filter = "OIHW", groups = 2 : i64, outputs = 0 : i64, high = [0, 0], layout = "NCHW", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<?x?x4x4xf32, ["n", "2*c", 4, 4]>, tensor<?x?x1x1xf32, ["o", "c", 1, 1]>) -> tensor<?x?x4x4xf32, ["n", "o", 4, 4]>
  return %y : tensor<?x?x4x4xf32, ["n", "o", 4, 4]>
}

// Known channels stay in one convolution.
// CHECK-LABEL: func.func @numbers(
// CHECK-NEXT: "xt.convolution"({{.*}} groups = 2
func.func @numbers(%x: tensor<?x6x4x4xf32, ["n", 6, 4, 4]>, %w: tensor<8x3x1x1xf32>) -> tensor<?x8x4x4xf32, ["n", 8, 4, 4]> {
  %y = "xt.convolution"(%x, %w) {dtype = f32, filter = "OIHW", groups = 2 : i64, outputs = 0 : i64, high = [0, 0], layout = "NCHW", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<?x6x4x4xf32, ["n", 6, 4, 4]>, tensor<8x3x1x1xf32>) -> tensor<?x8x4x4xf32, ["n", 8, 4, 4]>
  return %y : tensor<?x8x4x4xf32, ["n", 8, 4, 4]>
}

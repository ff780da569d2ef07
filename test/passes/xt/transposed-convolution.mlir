// RUN: %xcc_opt %s --pass-pipeline="transposed-convolution" --verify-each | filecheck %s

// Windows of 2x2 with stride 2 do not overlap: a product, whose parts go between the rows and columns.
// CHECK-LABEL: func.func @disjoint(
// CHECK: %[[R:.*]] = "xt.reverse"(%arg1) {axes = [0, 1]}
// CHECK: %[[Y:.*]] = "xt.dot_general"(%arg0, %{{.*}}) {{.*}} -> tensor<1x4x5x12xf32>
// CHECK: %[[P:.*]] = "xt.reshape"(%[[Y]]) {{.*}} -> tensor<1x4x5x2x2x3xf32>
// CHECK: %[[T:.*]] = "xt.transpose"(%[[P]]) {perm = [0, 1, 3, 2, 4, 5]}
// CHECK: %[[O:.*]] = "xt.reshape"(%[[T]]) {{.*}} -> tensor<1x8x10x3xf32>
// CHECK: return %[[O]]
func.func @disjoint(%x: tensor<1x4x5x6xf32>, %w: tensor<2x2x6x3xf32>) -> tensor<1x8x10x3xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [1, 1], high = [1, 1], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x5x6xf32>, tensor<2x2x6x3xf32>) -> tensor<1x8x10x3xf32>
  return %0 : tensor<1x8x10x3xf32>
}

// Windows of 3x3 with stride 2 overlap.
// CHECK-LABEL: func.func @overlapping(
// CHECK: xt.convolution
func.func @overlapping(%x: tensor<1x4x5x6xf32>, %w: tensor<3x3x6x3xf32>) -> tensor<1x9x11x3xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [2, 2], high = [2, 2], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x5x6xf32>, tensor<3x3x6x3xf32>) -> tensor<1x9x11x3xf32>
  return %0 : tensor<1x9x11x3xf32>
}

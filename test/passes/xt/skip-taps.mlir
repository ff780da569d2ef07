// RUN: %xcc_opt %s --pass-pipeline=skip-taps --verify-each | filecheck %s

// The middle tap reads the whole image, the others what is 12 rows and columns away; results without such a
// neighbour get nothing of it.
// CHECK-LABEL: func.func @dilated(
// CHECK-NOT: xt.convolution
// CHECK: %[[X:.*]] = "xt.slice"(%arg0) {limits = [1, 4, 4, 512], starts = [0, 0, 0, 0], {{.*}}} : {{.*}} -> tensor<1x4x4x512xf32>
// CHECK: %[[W:.*]] = "xt.slice"(%arg1) {limits = [1, 1, 512, 256], starts = [0, 0, 0, 0], {{.*}}} : {{.*}} -> tensor<1x1x512x256xf32>
// CHECK: %[[M:.*]] = "xt.reshape"(%[[W]])
// CHECK: %[[P:.*]] = "xt.dot_general"(%[[X]], %[[M]]) {{.*}} -> tensor<1x4x4x256xf32>
// CHECK: "xt.pad"(%[[P]]) {high = [0, 0, 0, 0], {{.*}}low = [0, 12, 12, 0]
// CHECK-COUNT-8: xt.dot_general
// CHECK-NOT: xt.dot_general
func.func @dilated(%x: tensor<1x16x16x512xf32>, %w: tensor<3x3x512x256xf32>) -> tensor<1x16x16x256xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [12, 12], layout = "NHWC", lhs_dilation = [1, 1], low = [12, 12], rhs_dilation = [12, 12], strides = [1, 1]} : (tensor<1x16x16x512xf32>, tensor<3x3x512x256xf32>) -> tensor<1x16x16x256xf32>
  return %0 : tensor<1x16x16x256xf32>
}

// Of a small image only the middle tap reads anything.
// CHECK-LABEL: func.func @beyond(
// CHECK-COUNT-1: xt.dot_general
// CHECK-NOT: xt.dot_general
func.func @beyond(%x: tensor<1x8x8x512xf32>, %w: tensor<3x3x512x256xf32>) -> tensor<1x8x8x256xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [12, 12], layout = "NHWC", lhs_dilation = [1, 1], low = [12, 12], rhs_dilation = [12, 12], strides = [1, 1]} : (tensor<1x8x8x512xf32>, tensor<3x3x512x256xf32>) -> tensor<1x8x8x256xf32>
  return %0 : tensor<1x8x8x256xf32>
}

// Most taps read the image; few channels, for which arrays that are read and written again cost more than products; and
// a result that is smaller than the image.
// CHECK-LABEL: func.func @near(
// CHECK: xt.convolution
func.func @near(%x: tensor<1x64x64x512xf32>, %w: tensor<3x3x512x256xf32>) -> tensor<1x64x64x256xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [2, 2], layout = "NHWC", lhs_dilation = [1, 1], low = [2, 2], rhs_dilation = [2, 2], strides = [1, 1]} : (tensor<1x64x64x512xf32>, tensor<3x3x512x256xf32>) -> tensor<1x64x64x256xf32>
  return %0 : tensor<1x64x64x256xf32>
}
// CHECK-LABEL: func.func @narrow(
// CHECK: xt.convolution
func.func @narrow(%x: tensor<1x16x16x8xf32>, %w: tensor<3x3x8x8xf32>) -> tensor<1x16x16x8xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [12, 12], layout = "NHWC", lhs_dilation = [1, 1], low = [12, 12], rhs_dilation = [12, 12], strides = [1, 1]} : (tensor<1x16x16x8xf32>, tensor<3x3x8x8xf32>) -> tensor<1x16x16x8xf32>
  return %0 : tensor<1x16x16x8xf32>
}
// CHECK-LABEL: func.func @smaller(
// CHECK: xt.convolution
func.func @smaller(%x: tensor<1x30x30x512xf32>, %w: tensor<3x3x512x256xf32>) -> tensor<1x28x28x256xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [11, 11], layout = "NHWC", lhs_dilation = [1, 1], low = [11, 11], rhs_dilation = [12, 12], strides = [1, 1]} : (tensor<1x30x30x512xf32>, tensor<3x3x512x256xf32>) -> tensor<1x28x28x256xf32>
  return %0 : tensor<1x28x28x256xf32>
}

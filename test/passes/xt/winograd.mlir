// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="winograd{tile=4}" --verify-each | filecheck %s

// 9 x 6 results take 3 x 2 tiles of 4 x 4; the zeros around the image grow to fill the last ones.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[X:.*]]: tensor<1x9x6x5xf32>
// CHECK: %[[P:.*]] = "xt.pad"(%[[X]]) {high = [0, 4, 3, 0], {{.*}}low = [0, 1, 1, 0], {{.*}}xcc.stored
// The filter grows when the model is loaded: its 9 places, in panels of 16 outputs, become 36.
// CHECK: %[[T:.*]] = "xt.weight"() {name = "w.taps16"} : () -> tensor<9x80xf32>
// CHECK: %[[G:.*]] = "xt.dot_general"(%{{.*}}, %[[T]]) {{.*}} (tensor<36x9xf32>, tensor<9x80xf32>) -> tensor<36x80xf32>
// CHECK: %[[W:.*]] = "xt.reshape"(%[[G]]) {shape = [6, 6, 1, 5, 16]}
// CHECK: "xt.winograd_convolution"(%[[P]], %[[W]]) {outputs = 8 : i64, spatial = [9, 6], tile = 4 : i64} : (tensor<1x14x10x5xf32>, tensor<6x6x1x5x16xf32>)
func.func @tiles(%x: tensor<1x9x6x5xf32>) -> tensor<1x9x6x8xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x3x5x8xf32>
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x9x6x5xf32>, tensor<3x3x5x8xf32>) -> tensor<1x9x6x8xf32>
  return %0 : tensor<1x9x6x8xf32>
}

// A computed filter would be transformed at each run.
// CHECK-LABEL: func.func @computed(
// CHECK-NOT: winograd
func.func @computed(%x: tensor<1x9x6x5xf32>, %w: tensor<3x3x5x8xf32>) -> tensor<1x7x4x8xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x9x6x5xf32>, tensor<3x3x5x8xf32>) -> tensor<1x7x4x8xf32>
  return %0 : tensor<1x7x4x8xf32>
}

// Steps of 2 leave fewer results in a tile.
// CHECK-LABEL: func.func @strided(
// CHECK-NOT: winograd
func.func @strided(%x: tensor<1x9x7x5xf32>) -> tensor<1x4x3x8xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x3x5x8xf32>
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [2, 2]} : (tensor<1x9x7x5xf32>, tensor<3x3x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %0 : tensor<1x4x3x8xf32>
}

// An image of any size is padded enough for any.
// CHECK-LABEL: func.func @symbolic(
// CHECK: %[[P:.*]] = "xt.pad"({{.*}}high = [0, 4, 4, 0], {{.*}}xcc.stored
// CHECK: "xt.winograd_convolution"(%[[P]], %{{.*}}spatial = ["h", "w"], tile = 4 : i64}
func.func @symbolic(%x: tensor<1x?x?x5xf32, [1, "h", "w", 5]>) -> tensor<1x?x?x8xf32, [1, "h", "w", 8]> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x3x5x8xf32>
  %0 = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x?x?x5xf32, [1, "h", "w", 5]>, tensor<3x3x5x8xf32>) -> tensor<1x?x?x8xf32, [1, "h", "w", 8]>
  return %0 : tensor<1x?x?x8xf32, [1, "h", "w", 8]>
}

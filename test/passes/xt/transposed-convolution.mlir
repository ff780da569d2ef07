// RUN: %xcc_opt %s --pass-pipeline="transposed-convolution" --verify-each | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="transposed-convolution{weighed=true}" | filecheck %s --check-prefix=GPU

// Windows of 2x2 with stride 2 do not overlap: a product, whose parts go between the rows and columns.
// CHECK-LABEL: func.func @disjoint(
// CHECK: "xt.reverse"(%{{.*}}) {axes = [1, 3]}
// CHECK: %[[Y:.*]] = "xt.dot_general"(%arg0, %{{.*}}) {{.*}} -> tensor<1x4x5x12xf32>
// CHECK: %[[P:.*]] = "xt.reshape"(%[[Y]]) {{.*}} -> tensor<1x4x5x1x2x2x3xf32>
// CHECK: %[[T:.*]] = "xt.transpose"(%[[P]]) {perm = [0, 1, 4, 2, 5, 3, 6]}
// CHECK: %[[O:.*]] = "xt.reshape"(%[[T]]) {{.*}} -> tensor<1x8x10x3xf32>
// CHECK-NEXT: return %[[O]]
func.func @disjoint(%x: tensor<1x4x5x6xf32>, %w: tensor<2x2x6x3xf32>) -> tensor<1x8x10x3xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [1, 1], high = [1, 1], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x5x6xf32>, tensor<2x2x6x3xf32>) -> tensor<1x8x10x3xf32>
  return %0 : tensor<1x8x10x3xf32>
}

// Windows of 3x3 with stride 2 overlap: two taps a dim, of which the last phase meets one.
// CHECK-LABEL: func.func @overlapping(
// CHECK: "xt.pad"(%arg1) {high = [1, 1, 0, 0]
// CHECK: %[[F:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<2x2x6x12xf32>
// CHECK: %[[Y:.*]] = "xt.convolution"(%arg0, %[[F]]) {{.*}}high = [1, 1]{{.*}}lhs_dilation = [1, 1], low = [1, 1]{{.*}} -> tensor<1x5x6x12xf32>
// CHECK: %[[O:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x10x12x3xf32>
// CHECK: "xt.slice"(%[[O]]) {limits = [1, 10, 12, 3], starts = [0, 1, 1, 0]
func.func @overlapping(%x: tensor<1x4x5x6xf32>, %w: tensor<3x3x6x3xf32>) -> tensor<1x9x11x3xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [2, 2], high = [2, 2], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x5x6xf32>, tensor<3x3x6x3xf32>) -> tensor<1x9x11x3xf32>
  return %0 : tensor<1x9x11x3xf32>
}

// Of two phases of stride 3 one meets the window of 1: the others are zeros.
// CHECK-LABEL: func.func @apart(
// CHECK: %[[Y:.*]] = "xt.dot_general"(%arg0, %{{.*}}) {{.*}} -> tensor<1x4x3xf32>
// CHECK: "xt.pad"(%{{.*}}) {high = [0, 0, 2, 0, 0]
// CHECK: "xt.slice"(%{{.*}}) {limits = [1, 10, 3]
func.func @apart(%x: tensor<1x4x6xf32>, %w: tensor<1x6x3xf32>) -> tensor<1x10x3xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1], low = [0], high = [0], lhs_dilation = [3], rhs_dilation = [1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x6xf32>, tensor<1x6x3xf32>) -> tensor<1x10x3xf32>
  return %0 : tensor<1x10x3xf32>
}

// A filter of unknown size is filled up to whole steps.
// CHECK-LABEL: func.func @unknown_filter(
// CHECK: "xt.pad"(%arg1) {high = ["2*floordiv(k + 1, 2) - k", 0, 0]
// CHECK: "xt.convolution"(%arg0, %{{.*}}) {{.*}}lhs_dilation = [1], low = ["floordiv(k + 1, 2) - 1"]
// CHECK-SAME: tensor<?x4x?xf32, ["floordiv(k + 1, 2)", 4, "2*o"]>
func.func @unknown_filter(%x: tensor<1x?x4xf32, [1, "h", 4]>, %w: tensor<?x4x?xf32, ["k", 4, "o"]>) -> tensor<1x?x?xf32, [1, "k + 2*h - 2", "o"]> {
  %0 = "xt.convolution"(%x, %w) {strides = [1], low = ["k - 1"], high = ["k - 1"], lhs_dilation = [2], rhs_dilation = [1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x?x4xf32, [1, "h", 4]>, tensor<?x4x?xf32, ["k", 4, "o"]>) -> tensor<1x?x?xf32, [1, "k + 2*h - 2", "o"]>
  return %0 : tensor<1x?x?xf32, [1, "k + 2*h - 2", "o"]>
}

// Depthwise, a kernel of its own skips the zeros.
// CHECK-LABEL: func.func @depthwise(
// CHECK: "xt.convolution"(%arg0, %arg1) {{.*}}lhs_dilation = [2]
func.func @depthwise(%x: tensor<1x4x6xf32>, %w: tensor<3x1x6xf32>) -> tensor<1x9x6xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1], low = [2], high = [2], lhs_dilation = [2], rhs_dilation = [1], groups = 6 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x4x6xf32>, tensor<3x1x6xf32>) -> tensor<1x9x6xf32>
  return %0 : tensor<1x9x6xf32>
}

// On GPUs multiplications by zeros are weighed against a pass over the results.
// GPU-LABEL: func.func @large(
// GPU: "xt.convolution"(%{{.*}}) {{.*}}lhs_dilation = [1, 1]{{.*}} -> tensor<16x17x17x1024xf16>
// GPU-LABEL: func.func @small(
// GPU: "xt.convolution"(%arg0, %arg1) {{.*}}lhs_dilation = [2, 2]
func.func @large(%x: tensor<16x16x16x512xf16>, %w: tensor<4x4x512x256xf16>) -> tensor<16x32x32x256xf16> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [2, 2], high = [2, 2], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f16} : (tensor<16x16x16x512xf16>, tensor<4x4x512x256xf16>) -> tensor<16x32x32x256xf16>
  return %0 : tensor<16x32x32x256xf16>
}
func.func @small(%x: tensor<1x16x16x64xf16>, %w: tensor<4x4x64x32xf16>) -> tensor<1x32x32x32xf16> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [2, 2], high = [2, 2], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f16} : (tensor<1x16x16x64xf16>, tensor<4x4x64x32xf16>) -> tensor<1x32x32x32xf16>
  return %0 : tensor<1x32x32x32xf16>
}

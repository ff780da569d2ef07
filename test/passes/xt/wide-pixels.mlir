// RUN: %xcc_opt %s --pass-pipeline=wide-pixels | filecheck %s

// The first layer of a residual network: two pixels of 4 channels are one of 8.
// CHECK-LABEL: @seven
// CHECK: %[[X:.*]] = "xt.pad"(%{{.*}}) {high = [0, 0, 0, 1]
// CHECK: %[[W:.*]] = "xt.pad"(%{{.*}}) {high = [0, 0, 1, 0]{{.*}}low = [0, 1, 0, 0]
// CHECK: "xt.reshape"(%[[X]]) {{.*}} -> tensor<1x224x112x8xf16>
// CHECK: "xt.reshape"(%[[W]]) {{.*}} -> tensor<7x4x8x64xf16>
// CHECK: "xt.convolution"(%{{.*}}) {{.*}}high = [3, 1]{{.*}}low = [3, 2]{{.*}}strides = [2, 1]
func.func @seven(%x: tensor<1x224x224x3xf16>) -> tensor<1x112x112x64xf16> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<7x7x3x64xf16>
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [3, 3], layout = "NHWC", lhs_dilation = [1, 1], low = [3, 3], rhs_dilation = [1, 1], strides = [2, 2]} : (tensor<1x224x224x3xf16>, tensor<7x7x3x64xf16>) -> tensor<1x112x112x64xf16>
  return %y : tensor<1x112x112x64xf16>
}

// A symbolic width, or one that the step does not divide: channels alone, 8 bytes where 16 would add too much.
// CHECK-LABEL: @symbolic
// CHECK: "xt.convolution"(%{{.*}}, %{{.*}}) {{.*}}strides = [1, 1]{{.*}}: (tensor<1x8x?x4xf16, [1, 8, "w", 4]>, tensor<3x3x4x16xf16>)
func.func @symbolic(%x: tensor<1x8x?x3xf16, [1, 8, "w", 3]>) -> tensor<1x8x?x16xf16, [1, 8, "w", 16]> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x3x3x16xf16>
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x?x3xf16, [1, 8, "w", 3]>, tensor<3x3x3x16xf16>) -> tensor<1x8x?x16xf16, [1, 8, "w", 16]>
  return %y : tensor<1x8x?x16xf16, [1, 8, "w", 16]>
}

// Pixels that are words, and a single channel that would be mostly zeros.
// CHECK-LABEL: @unchanged
// CHECK-NOT: xt.pad
func.func @unchanged(%x: tensor<1x8x8x8xf16>, %g: tensor<1x8x8x1xf16>) -> (tensor<1x8x8x16xf16>, tensor<1x8x8x16xf16>) {
  %w = "xt.weight"() {name = "w"} : () -> tensor<1x1x8x16xf16>
  %v = "xt.weight"() {name = "v"} : () -> tensor<1x1x1x16xf16>
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x8xf16>, tensor<1x1x8x16xf16>) -> tensor<1x8x8x16xf16>
  %z = "xt.convolution"(%g, %v) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x1xf16>, tensor<1x1x1x16xf16>) -> tensor<1x8x8x16xf16>
  return %y, %z : tensor<1x8x8x16xf16>, tensor<1x8x8x16xf16>
}

// A parameter of a model in training is much less than the image; one as large as the image is left as it is.
// CHECK-LABEL: @computed
// CHECK: "xt.convolution"{{.*}}: (tensor<32x224x112x8xf16>, tensor<7x4x8x64xf16>)
// CHECK: "xt.convolution"{{.*}}: (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>)
func.func @computed(%x: tensor<32x224x224x3xf16>, %w: tensor<7x7x3x64xf16>, %g: tensor<1x8x8x3xf16>, %v: tensor<3x3x3x16xf16>) -> (tensor<32x112x112x64xf16>, tensor<1x8x8x16xf16>) {
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [3, 3], layout = "NHWC", lhs_dilation = [1, 1], low = [3, 3], rhs_dilation = [1, 1], strides = [2, 2]} : (tensor<32x224x224x3xf16>, tensor<7x7x3x64xf16>) -> tensor<32x112x112x64xf16>
  %z = "xt.convolution"(%g, %v) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>) -> tensor<1x8x8x16xf16>
  return %y, %z : tensor<32x112x112x64xf16>, tensor<1x8x8x16xf16>
}

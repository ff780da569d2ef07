// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=join-groups --verify-each | filecheck %s

// Four groups of four channels are one of sixteen, whose filter is 0 where an output's own channels are not.
// CHECK-LABEL: func.func @four(
// CHECK: %[[S:.*]] = "xt.select"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<1x1x4x1x1x4x1xi1>, tensor<3x3x4x4x8x4x4xf16>, tensor<f16>)
// CHECK: %[[W:.*]] = "xt.reshape"(%[[S]]) {shape = [3, 3, 16, 128]}
// CHECK: "xt.convolution"(%arg0, %[[W]]) {{.*}} groups = 8
func.func @four(%x: tensor<2x9x9x128xf16>, %w: tensor<3x3x4x128xf16>) -> tensor<2x7x7x128xf16> {
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 32 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<2x9x9x128xf16>, tensor<3x3x4x128xf16>) -> tensor<2x7x7x128xf16>
  return %y : tensor<2x7x7x128xf16>
}

// Channels on their own are no product.
// CHECK-LABEL: func.func @depthwise(
// CHECK-NEXT: "xt.convolution"({{.*}} groups = 32
func.func @depthwise(%x: tensor<2x9x9x32xf16>, %w: tensor<3x3x1x32xf16>) -> tensor<2x7x7x32xf16> {
  %y = "xt.convolution"(%x, %w) {dtype = f16, filter = "HWIO", groups = 32 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<2x9x9x32xf16>, tensor<3x3x1x32xf16>) -> tensor<2x7x7x32xf16>
  return %y : tensor<2x7x7x32xf16>
}

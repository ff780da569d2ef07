// RUN: %xcc_opt %s --pass-pipeline="filter-gradients, xt-simplify" --target=nvptx --chip=sm_90a | filecheck %s

// The gradient of a 3x3 filter with stride 2: images are read as they lie, and so is what they are multiplied with.
// CHECK-LABEL: @gradient
// CHECK-SAME: (%[[X:.*]]: tensor<32x56x56x64xf16>, %[[G:.*]]: tensor<32x28x28x64xf16>)
// CHECK-NOT: xt.transpose
// CHECK: %[[Y:.*]] = "xt.convolution"(%[[X]], %[[G]]) {dtype = f16, filter = "GIHWO", groups = 1 : i64, high = [0, 0], layout = "CHWN", {{.*}}rhs_dilation = [2, 2]{{.*}} -> tensor<64x3x3x64xf16>
// CHECK: "xt.transpose"(%[[Y]]) {perm = [3, 1, 2, 0]}
func.func @gradient(%x: tensor<32x56x56x64xf16>, %g: tensor<32x28x28x64xf16>) -> tensor<64x3x3x64xf16> {
  %a = "xt.transpose"(%x) {perm = [3, 1, 2, 0]} : (tensor<32x56x56x64xf16>) -> tensor<64x56x56x32xf16>
  %b = "xt.transpose"(%g) {perm = [1, 2, 0, 3]} : (tensor<32x28x28x64xf16>) -> tensor<28x28x32x64xf16>
  %y = "xt.convolution"(%a, %b) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [2, 2], strides = [1, 1]} : (tensor<64x56x56x32xf16>, tensor<28x28x32x64xf16>) -> tensor<64x3x3x64xf16>
  return %y : tensor<64x3x3x64xf16>
}

// The gradient of an image by a filter that is transposed, too: channels are no batch.
// CHECK-LABEL: @image
// CHECK: "xt.convolution"{{.*}}layout = "NHWC"
func.func @image(%g: tensor<32x64x28x28xf16>, %w: tensor<64x128x3x3xf16>) -> tensor<32x28x28x128xf16> {
  %a = "xt.transpose"(%g) {perm = [0, 2, 3, 1]} : (tensor<32x64x28x28xf16>) -> tensor<32x28x28x64xf16>
  %b = "xt.transpose"(%w) {perm = [2, 3, 0, 1]} : (tensor<64x128x3x3xf16>) -> tensor<3x3x64x128xf16>
  %y = "xt.convolution"(%a, %b) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<32x28x28x64xf16>, tensor<3x3x64x128xf16>) -> tensor<32x28x28x128xf16>
  return %y : tensor<32x28x28x128xf16>
}

// Three channels are padded to a word of four.
// CHECK-LABEL: @few_channels
// CHECK: %[[X:.*]] = "xt.pad"
// CHECK: "xt.convolution"(%[[X]], %{{.*}}) {{.*}} -> tensor<64x7x7x4xf16>
// CHECK: "xt.slice"
func.func @few_channels(%x: tensor<16x32x32x3xf16>, %g: tensor<16x32x32x64xf16>) -> tensor<3x7x7x64xf16> {
  %a = "xt.transpose"(%x) {perm = [3, 1, 2, 0]} : (tensor<16x32x32x3xf16>) -> tensor<3x32x32x16xf16>
  %b = "xt.transpose"(%g) {perm = [1, 2, 0, 3]} : (tensor<16x32x32x64xf16>) -> tensor<32x32x16x64xf16>
  %y = "xt.convolution"(%a, %b) {dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [3, 3], layout = "NHWC", lhs_dilation = [1, 1], low = [3, 3], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<3x32x32x16xf16>, tensor<32x32x16x64xf16>) -> tensor<3x7x7x64xf16>
  return %y : tensor<3x7x7x64xf16>
}

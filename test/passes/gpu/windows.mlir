// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure{tuned=false}, tile, assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s

// Eight neighbours along a row read 8 + 2 places of each row of the window, and no read is behind a branch.
// CHECK-LABEL: gpu.func @depthwise
// CHECK-NOT: scf.if
// CHECK-COUNT-30: vector.load %reinterpret_cast
// CHECK-NOT: vector.load %reinterpret_cast
// CHECK: gpu.return
func.func private @depthwise(%x: tensor<32x56x56x64xf16>, %w: tensor<3x3x1x64xf16>) -> tensor<32x56x56x64xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {lhs_dilation = [1, 1], rhs_dilation = [1, 1], dtype = f16, filter = "HWIO", groups = 64 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", low = [1, 1], strides = [1, 1]} : (tensor<32x56x56x64xf16>, tensor<3x3x1x64xf16>) -> tensor<32x56x56x64xf16>
  return %0 : tensor<32x56x56x64xf16>
}

// A thread of the filter's gradient reads each pixel of a line of both images once.
// CHECK-LABEL: gpu.func @filter_gradient(
// CHECK: scf.for
// CHECK-COUNT-28: vector.load %reinterpret_cast
// CHECK-NOT: vector.load %reinterpret_cast
// CHECK: gpu.return
func.func private @filter_gradient(%x: tensor<1x16x14x14x384xf16>, %g: tensor<16x14x14x1x384xf16>) -> tensor<1x1x7x7x384xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %g) {lhs_dilation = [1, 1, 1], rhs_dilation = [1, 1, 1], dtype = f16, filter = "HWIO", groups = 384 : i64, high = [0, 3, 3], layout = "NHWC", low = [0, 3, 3], outputs = 0 : i64, strides = [1, 1, 1]} : (tensor<1x16x14x14x384xf16>, tensor<16x14x14x1x384xf16>) -> tensor<1x1x7x7x384xf16>
  return %0 : tensor<1x1x7x7x384xf16>
}

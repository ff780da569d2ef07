// RUN: %xcc_opt %s --pass-pipeline=explicit-padding --split-input-file | filecheck %s

// CHECK-LABEL: func.func @padded(
// CHECK: %[[P:.*]] = "xt.pad"(%{{.*}}) {high = [0, 2, 1, 0], interior = [0, 0, 0, 0], low = [0, 1, 1, 0]{{.*}}xcc.stored
// CHECK: "xt.convolution"(%[[P]], %{{.*}}) {{.*}}high = [0, 0]{{.*}}low = [0, 0]
func.func @padded(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x5xf32>) -> tensor<1x9x8x5xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = "f32", filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [2, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x4xf32>, tensor<3x3x4x5xf32>) -> tensor<1x9x8x5xf32>
  return %0 : tensor<1x9x8x5xf32>
}

// A convolution without padding stays as it is.
// CHECK-LABEL: func.func @bare(
// CHECK-NOT: xt.pad
func.func @bare(%x: tensor<1x8x8x4xf32>, %w: tensor<1x1x4x5xf32>) -> tensor<1x8x8x5xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = "f32", filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x4xf32>, tensor<1x1x4x5xf32>) -> tensor<1x8x8x5xf32>
  return %0 : tensor<1x8x8x5xf32>
}

// Zeros between the elements are no border.
// CHECK-LABEL: func.func @spread(
// CHECK-NOT: xcc.stored
func.func @spread(%x: tensor<1x8x8x4xf32>, %w: tensor<1x1x4x5xf32>) -> tensor<1x15x8x5xf32> {
  %0 = "xt.convolution"(%x, %w) {dtype = "f32", filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [2, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x4xf32>, tensor<1x1x4x5xf32>) -> tensor<1x15x8x5xf32>
  return %0 : tensor<1x15x8x5xf32>
}

// A padding that was there, by a zero point, is stored as well; one that others read is not.
// CHECK-LABEL: func.func @there(
// CHECK: "xt.pad"(%{{.*}}) {{.*}}value = 7.000000e+00 : f64, xcc.stored}
// CHECK: "xt.pad"(%{{.*}}) {{.*}}value = 8.000000e+00 : f64}
func.func @there(%x: tensor<1x6x6x4xui8>, %w: tensor<3x3x4x5xi8>) -> (tensor<1x6x6x5xi32>, tensor<1x6x6x5xi32>, tensor<1x8x8x4xui8>) {
  %p = "xt.pad"(%x) {low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0], mode = "constant", value = 7.0 : f64} : (tensor<1x6x6x4xui8>) -> tensor<1x8x8x4xui8>
  %q = "xt.pad"(%x) {low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0], mode = "constant", value = 8.0 : f64} : (tensor<1x6x6x4xui8>) -> tensor<1x8x8x4xui8>
  %0 = "xt.convolution"(%p, %w) {dtype = i32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x4xui8>, tensor<3x3x4x5xi8>) -> tensor<1x6x6x5xi32>
  %1 = "xt.convolution"(%q, %w) {dtype = i32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x8x8x4xui8>, tensor<3x3x4x5xi8>) -> tensor<1x6x6x5xi32>
  return %0, %1, %q : tensor<1x6x6x5xi32>, tensor<1x6x6x5xi32>, tensor<1x8x8x4xui8>
}

// Mirrored ends of a long row are pieces beside it; other dims stay a pad.
// CHECK-LABEL: func.func @mirrored(
// CHECK: %[[Y:.*]] = "xt.pad"(%arg0) {high = [1, 0], {{.*}}low = [2, 0], mode = "reflect"
// CHECK: %[[S:.*]] = "xt.slice"(%[[Y]]) {limits = [8, 4], starts = [0, 1]
// CHECK: %[[A:.*]] = "xt.reverse"(%[[S]]) {axes = [1]}
// CHECK: %[[T:.*]] = "xt.slice"(%[[Y]]) {limits = [8, 63], starts = [0, 59]
// CHECK: %[[B:.*]] = "xt.reverse"(%[[T]]) {axes = [1]}
// CHECK: "xtv.concatenate"(%[[A]], %[[Y]], %[[B]])
func.func @mirrored(%x: tensor<5x64xf32>) -> tensor<8x71xf32> {
  %0 = "xt.pad"(%x) {low = [2, 3], high = [1, 4], interior = [0, 0], mode = "reflect", value = 0.0 : f64} : (tensor<5x64xf32>) -> tensor<8x71xf32>
  return %0 : tensor<8x71xf32>
}

// Short rows have no tile between their ends.
// CHECK-LABEL: func.func @mirrored_short(
// CHECK: "xt.pad"(%arg0) {high = [1, 4]
// CHECK-NOT: concatenate
func.func @mirrored_short(%x: tensor<5x16xf32>) -> tensor<8x23xf32> {
  %0 = "xt.pad"(%x) {low = [2, 3], high = [1, 4], interior = [0, 0], mode = "reflect", value = 0.0 : f64} : (tensor<5x16xf32>) -> tensor<8x23xf32>
  return %0 : tensor<8x23xf32>
}

// -----
// A wrapped row has its other end beside it. So it is where a size of the call is known to be long enough, and nowhere else.
// CHECK-LABEL: func.func @wrapped(
// CHECK: %[[A:.*]] = "xt.slice"(%arg0) {limits = [5, "m"], starts = [0, "m - 3"]
// CHECK: %[[B:.*]] = "xt.slice"(%arg0) {limits = [5, 4], starts = [0, 0]
// CHECK: "xtv.concatenate"(%[[A]], %arg0, %[[B]])
// CHECK: "xt.pad"(%arg1)
module attributes {xt.dims = {m = [4, 100]}} {
  func.func @wrapped(%x: tensor<5x?xf32, [5, "m"]>, %y: tensor<5x?xf32, [5, "n"]>) -> (tensor<5x?xf32, [5, "m + 7"]>, tensor<5x?xf32, [5, "n + 7"]>) {
    %0 = "xt.pad"(%x) {low = [0, 3], high = [0, 4], interior = [0, 0], mode = "wrap", value = 0.0 : f64} : (tensor<5x?xf32, [5, "m"]>) -> tensor<5x?xf32, [5, "m + 7"]>
    %1 = "xt.pad"(%y) {low = [0, 3], high = [0, 4], interior = [0, 0], mode = "wrap", value = 0.0 : f64} : (tensor<5x?xf32, [5, "n"]>) -> tensor<5x?xf32, [5, "n + 7"]>
    return %0, %1 : tensor<5x?xf32, [5, "m + 7"]>, tensor<5x?xf32, [5, "n + 7"]>
  }
}

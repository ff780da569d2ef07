// RUN: %xcc_opt %s --pass-pipeline="channels-last" --verify-each | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="channels-last{block=4}" --verify-each | filecheck %s --check-prefix=BLOCK

// CHECK-LABEL: func.func @relu_between_convolutions(
// CHECK-SAME: %[[X:.*]]: tensor<1x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>, %[[V:.*]]: tensor<4x4x3x3xf32>
// CHECK-DAG: %[[XT:.*]] = "xt.transpose"(%[[X]]) {perm = [0, 2, 3, 1]}
// CHECK-DAG: %[[WT:.*]] = "xt.transpose"(%[[W]]) {perm = [2, 3, 1, 0]}
// CHECK: %[[A:.*]] = "xt.convolution"(%[[XT]], %[[WT]])
// CHECK-SAME: filter = "HWIO"
// CHECK-SAME: layout = "NHWC"
// CHECK: %[[R:.*]] = "xt.abs"(%[[A]])
// CHECK: %[[B:.*]] = "xt.convolution"(%[[R]]
// CHECK: %[[Y:.*]] = "xt.transpose"(%[[B]]) {perm = [0, 3, 1, 2]}
// CHECK: return %[[Y]]
// BLOCK-LABEL: func.func @relu_between_convolutions(
// BLOCK: filter = "OHWIo"
// BLOCK-SAME: tensor<1x3x3x3x4xf32>
func.func @relu_between_convolutions(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = "xt.abs"(%0) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %2 = "xt.convolution"(%1, %v) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %2 : tensor<1x4x4x4xf32>
}

// A model without convolutions keeps its layout.
// CHECK-LABEL: func.func @no_convolution(
// CHECK-NOT: xt.transpose
func.func @no_convolution(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %0 = "xt.abs"(%x) : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// The padding of an image comes behind the transpose, which then has less to move.
// CHECK-LABEL: func.func @padded_image(
// CHECK: %[[T:.*]] = "xt.transpose"(%{{.*}}) {perm = [0, 2, 3, 1]} : (tensor<1x3x8x8xf32>)
// CHECK: "xt.pad"(%[[T]]) {high = [0, 1, 2, 0], {{.*}}low = [0, 3, 4, 0]
// CHECK: xt.convolution
func.func @padded_image(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x10x12xf32> {
  %p = "xt.pad"(%x) {low = [0, 0, 3, 4], high = [0, 0, 1, 2], interior = [0, 0, 0, 0], mode = "constant", value = 0.0 : f64} : (tensor<1x3x8x8xf32>) -> tensor<1x3x12x14xf32>
  %0 = "xt.convolution"(%p, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x3x12x14xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x10x12xf32>
  return %0 : tensor<1x4x10x12xf32>
}

// What comes with the channels last stays so, ahead of a convolution, too; without convolutions it is left alone.
// CHECK-LABEL: func.func @comes_channels_last(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x8x3xf32>
// CHECK: %[[A:.*]] = "xt.abs"(%[[X]])
// CHECK: "xt.convolution"(%[[A]]
func.func @comes_channels_last(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32>
  %a = "xt.abs"(%t) : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  %0 = "xt.convolution"(%a, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// CHECK-LABEL: func.func @turned_without_convolution(
// CHECK: %[[T:.*]] = "xt.transpose"
// CHECK: "xt.abs"(%[[T]])
func.func @turned_without_convolution(%x: tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32>
  %a = "xt.abs"(%t) : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %a : tensor<1x3x8x8xf32>
}

// Groups of channels that lie last; without a convolution ahead of it a norm stays as it is.
// CHECK-LABEL: func.func @norm_of_groups(
// CHECK: %[[A:.*]] = "xt.convolution"
// CHECK: %[[N:.*]] = "xt.group_norm"(%[[A]], %arg2) {axis = 3
// CHECK: "xt.abs"(%[[N]])
// CHECK: "xt.group_norm"(%arg0) {axis = 1
func.func @norm_of_groups(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>, %s: tensor<4xf32>) -> (tensor<1x4x6x6xf32>, tensor<1x2x8x8xf32>) {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = "xt.group_norm"(%0, %s) {axis = 1 : i64, eps = 0.5 : f64, groups = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %2 = "xt.abs"(%1) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %3 = "xt.group_norm"(%x) {axis = 1 : i64, eps = 0.5 : f64, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %2, %3 : tensor<1x4x6x6xf32>, tensor<1x2x8x8xf32>
}

// Rows that a transpose makes of pixels are no image, though the transpose is that of one: they stay rows.
// CHECK-LABEL: func.func @rows_of_pixels(
// CHECK: %[[R:.*]] = "xt.transpose"(%{{.*}}) {perm = [0, 2, 1]} : (tensor<1x4x36xf32>)
// CHECK: "xt.add"(%[[R]], %arg2)
func.func @rows_of_pixels(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %y: tensor<1x36x4xf32>) -> tensor<1x36x4xf32> {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NCHW", filter = "OIHW", dtype = f32} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = "xt.reshape"(%0) {shape = [1, 4, 36]} : (tensor<1x4x6x6xf32>) -> tensor<1x4x36xf32>
  %2 = "xt.transpose"(%1) {perm = [0, 2, 1]} : (tensor<1x4x36xf32>) -> tensor<1x36x4xf32>
  %3 = "xt.add"(%2, %y) : (tensor<1x36x4xf32>, tensor<1x36x4xf32>) -> tensor<1x36x4xf32>
  return %3 : tensor<1x36x4xf32>
}

// Lines that a resize picks, of an image whose pixels were in a row, as tokens are.
// CHECK-LABEL: func.func @resized_tokens(
// CHECK: %[[X:.*]] = "xt.reshape"(%arg0) {shape = [2, 4, 4, 8]}
// CHECK: %[[G:.*]] = "xt.gather"(%[[X]], %arg1) {axis = 1 : i64
// CHECK: "xt.dot_general"(%[[G]]
func.func @resized_tokens(%t: tensor<2x16x8xf32>, %i: tensor<7xi64>, %w: tensor<3x8x1x1xf32>) -> tensor<2x3x7x4xf32> {
  %c = "xt.transpose"(%t) {perm = [0, 2, 1]} : (tensor<2x16x8xf32>) -> tensor<2x8x16xf32>
  %x = "xt.reshape"(%c) {shape = [2, 8, 4, 4]} : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
  %g = "xt.gather"(%x, %i) {axis = 2 : i64, batch_dims = 0 : i64} : (tensor<2x8x4x4xf32>, tensor<7xi64>) -> tensor<2x8x7x4xf32>
  %y = "xt.convolution"(%g, %w) {dtype = f32, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NCHW", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<2x8x7x4xf32>, tensor<3x8x1x1xf32>) -> tensor<2x3x7x4xf32>
  return %y : tensor<2x3x7x4xf32>
}

// Images come with the channels last, and no convolution reads them: what reads images does so where they lie.
// CHECK-LABEL: func.func @pool_alone(
// CHECK-NEXT: "xt.reduce_window"(%arg0) {{.*}}window = [1, 2, 2, 1]
func.func @pool_alone(%x: tensor<2x8x8x16xf32>) -> tensor<2x4x4x16xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<2x8x8x16xf32>) -> tensor<2x16x8x8xf32>
  %p = "xt.reduce_window"(%t) {dilations = [1, 1, 1, 1], high = [0, 0, 0, 0], kind = "max", low = [0, 0, 0, 0], strides = [1, 1, 2, 2], window = [1, 1, 2, 2]} : (tensor<2x16x8x8xf32>) -> tensor<2x16x4x4xf32>
  %y = "xt.transpose"(%p) {perm = [0, 2, 3, 1]} : (tensor<2x16x4x4xf32>) -> tensor<2x4x4x16xf32>
  return %y : tensor<2x4x4x16xf32>
}

// CHECK-LABEL: func.func @mean_of_narrow(
// CHECK-NEXT: %[[W:.*]] = "xt.convert"(%arg0)
// CHECK: "xt.reduce"(%[[W]]) {axes = [1, 2]
func.func @mean_of_narrow(%x: tensor<2x8x8x16xbf16>) -> tensor<2x16x1x1xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<2x8x8x16xbf16>) -> tensor<2x16x8x8xbf16>
  %w = "xt.convert"(%t) {dtype = f32, saturate = false} : (tensor<2x16x8x8xbf16>) -> tensor<2x16x8x8xf32>
  %y = "xt.reduce"(%w) {axes = [2, 3], keepdims = true, kind = "sum"} : (tensor<2x16x8x8xf32>) -> tensor<2x16x1x1xf32>
  return %y : tensor<2x16x1x1xf32>
}

// CHECK-LABEL: func.func @lines(
// CHECK-NEXT: "xt.gather"(%arg0, %arg1) {axis = 1
func.func @lines(%x: tensor<2x8x8x16xf32>, %i: tensor<12xi64>) -> tensor<2x12x8x16xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<2x8x8x16xf32>) -> tensor<2x16x8x8xf32>
  %g = "xt.gather"(%t, %i) {axis = 2 : i64, batch_dims = 0 : i64} : (tensor<2x16x8x8xf32>, tensor<12xi64>) -> tensor<2x16x12x8xf32>
  %y = "xt.transpose"(%g) {perm = [0, 2, 3, 1]} : (tensor<2x16x12x8xf32>) -> tensor<2x12x8x16xf32>
  return %y : tensor<2x12x8x16xf32>
}

// Rows of other things look like images of one dim.
// CHECK-LABEL: func.func @rows(
// CHECK-NEXT: %[[T:.*]] = "xt.transpose"(%arg0)
// CHECK-NEXT: "xt.reduce"(%[[T]]) {axes = [2]
func.func @rows(%x: tensor<2x8x16xf32>) -> tensor<2x16x1xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 2, 1]} : (tensor<2x8x16xf32>) -> tensor<2x16x8xf32>
  %y = "xt.reduce"(%t) {axes = [2], keepdims = true, kind = "sum"} : (tensor<2x16x8xf32>) -> tensor<2x16x1xf32>
  return %y : tensor<2x16x1xf32>
}

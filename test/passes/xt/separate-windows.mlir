// RUN: %xcc_opt %s --chip=znver4 --pass-pipeline=separate-windows | filecheck %s

// Rows first, then columns, whose border is stored with the image between.
// CHECK-LABEL: func.func @large(
// CHECK: %[[ROWS:.*]] = "xt.reduce_window"(%arg0) {{.*}}high = [0, 0, 2, 0]{{.*}}low = [0, 0, 2, 0]{{.*}}window = [1, 1, 5, 1]
// CHECK: %[[STORED:.*]] = "xt.pad"(%[[ROWS]]) {high = [0, 0, 0, 2]{{.*}}low = [0, 0, 0, 2]{{.*}}value = 0xFFF0000000000000 : f64, xcc.stored
// CHECK: "xt.reduce_window"(%[[STORED]]) {{.*}}high = [0, 0, 0, 0]{{.*}}low = [0, 0, 0, 0]{{.*}}window = [1, 1, 1, 5]
func.func @large(%x: tensor<1x8x20x20xf32>) -> tensor<1x8x20x20xf32> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 0, 2, 2], kind = "max", low = [0, 0, 2, 2], strides = [1, 1, 1, 1], window = [1, 1, 5, 5]} : (tensor<1x8x20x20xf32>) -> tensor<1x8x20x20xf32>
  return %0 : tensor<1x8x20x20xf32>
}

// With channels last all lanes share a test: no border is stored.
// CHECK-LABEL: func.func @channels_last(
// CHECK-NOT: xt.pad
// CHECK: window = [1, 5, 1, 1]
// CHECK-NOT: xt.pad
// CHECK: window = [1, 1, 5, 1]
func.func @channels_last(%x: tensor<1x20x20x8xf32>) -> tensor<1x20x20x8xf32> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 2, 2, 0], kind = "max", low = [0, 2, 2, 0], strides = [1, 1, 1, 1], window = [1, 5, 5, 1]} : (tensor<1x20x20x8xf32>) -> tensor<1x20x20x8xf32>
  return %0 : tensor<1x20x20x8xf32>
}

// One axis: the border alone.
// CHECK-LABEL: func.func @one_axis(
// CHECK: "xt.pad"(%arg0) {{.*}}xcc.stored
// CHECK: window = [1, 1, 5]
func.func @one_axis(%x: tensor<1x8x64xf32>) -> tensor<1x8x64xf32> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1], high = [0, 0, 2], kind = "max", low = [0, 0, 2], strides = [1, 1, 1], window = [1, 1, 5]} : (tensor<1x8x64xf32>) -> tensor<1x8x64xf32>
  return %0 : tensor<1x8x64xf32>
}

// Few elements, an image of which more is kept between than is gained, and sums that would be rounded in between.
// CHECK-LABEL: func.func @small(
// CHECK: window = [1, 1, 2, 2]
func.func @small(%x: tensor<1x8x20x20xf32>) -> tensor<1x8x10x10xf32> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 0, 0, 0], kind = "max", low = [0, 0, 0, 0], strides = [1, 1, 2, 2], window = [1, 1, 2, 2]} : (tensor<1x8x20x20xf32>) -> tensor<1x8x10x10xf32>
  return %0 : tensor<1x8x10x10xf32>
}

// CHECK-LABEL: func.func @far(
// CHECK: window = [1, 1, 3, 3]
func.func @far(%x: tensor<64x64x112x112xf32>) -> tensor<64x64x112x112xf32> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 0, 1, 1], kind = "max", low = [0, 0, 1, 1], strides = [1, 1, 1, 1], window = [1, 1, 3, 3]} : (tensor<64x64x112x112xf32>) -> tensor<64x64x112x112xf32>
  return %0 : tensor<64x64x112x112xf32>
}

// CHECK-LABEL: func.func @half(
// CHECK: window = [1, 1, 5, 5]
func.func @half(%x: tensor<1x8x20x20xf16>) -> tensor<1x8x20x20xf16> {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 0, 2, 2], kind = "sum", low = [0, 0, 2, 2], strides = [1, 1, 1, 1], window = [1, 1, 5, 5]} : (tensor<1x8x20x20xf16>) -> tensor<1x8x20x20xf16>
  return %0 : tensor<1x8x20x20xf16>
}

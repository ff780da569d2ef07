// RUN: %xcc_opt %s --chip=znver4 --pass-pipeline="pack-weights{width=4 dot=vnni}" --verify-each | filecheck %s

// A weight [K, N] goes into panels of 4 columns; the last one is filled up.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[W:.*]] = "xt.weight"() {name = "w.panels4"} : () -> tensor<3x5x4xf32>
// CHECK: "xt.packed_matmul"(%{{.*}}, %[[W]]) {batch = 0 : i64, columns = [10]
func.func @columns(%x: tensor<2x5xf32>) -> tensor<2x10xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<5x10xf32>
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x5xf32>, tensor<5x10xf32>) -> tensor<2x10xf32>
  return %0 : tensor<2x10xf32>
}

// A weight [N, K] is transposed on the way; two users share it.
// CHECK-LABEL: func.func @transposed(
// CHECK-COUNT-2: "xt.weight"() {name = "v.panels4t"} : () -> tensor<2x5x4xf32>
// CHECK-NOT: xt.weight
func.func @transposed(%x: tensor<2x5xf32>, %y: tensor<3x5xf32>) -> (tensor<2x8xf32>, tensor<3x8xf32>) {
  %w = "xt.weight"() {name = "v"} : () -> tensor<8x5xf32>
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<2x5xf32>, tensor<8x5xf32>) -> tensor<2x8xf32>
  %1 = "xt.dot_general"(%y, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<3x5xf32>, tensor<8x5xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<3x8xf32>
}

// CHECK-LABEL: func.func @filter(
// CHECK: %[[W:.*]] = "xt.weight"() {name = "f.panels4"} : () -> tensor<2x3x3x5x4xf32>
// CHECK: "xt.convolution"(%{{.*}}, %[[W]])
// CHECK-SAME: filter = "OHWIo"
func.func @filter(%x: tensor<1x6x6x5xf32>) -> tensor<1x4x4x8xf32> {
  %w = "xt.weight"() {name = "f"} : () -> tensor<3x3x5x8xf32>
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x6x6x5xf32>, tensor<3x3x5x8xf32>) -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}

// One panel lies in order already; an operand that is no weight stays.
// CHECK-LABEL: func.func @as_they_are(
// CHECK-NOT: xt.packed_matmul
func.func @as_they_are(%x: tensor<2x5xf32>, %v: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %w = "xt.weight"() {name = "small"} : () -> tensor<5x4xf32>
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
  %1 = "xt.dot_general"(%0, %v) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// Bytes lie in groups of 4 rows; what the last group lacks is zeros, of the left operand too.
// CHECK-LABEL: func.func @bytes(
// CHECK: %[[W:.*]] = "xt.weight"() {name = "q.panels4x4"} : () -> tensor<2x2x4x4xi8>
// CHECK: %[[X:.*]] = "xt.pad"(%{{.*}}) {high = [0, 3]
// CHECK: "xt.packed_matmul"(%[[X]], %[[W]]) {batch = 0 : i64, columns = [8], dtype = i32}
func.func @bytes(%x: tensor<2x5xui8>) -> tensor<2x8xi32> {
  %w = "xt.weight"() {name = "q"} : () -> tensor<5x8xi8>
  %0 = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x5xui8>, tensor<5x8xi8>) -> tensor<2x8xi32>
  return %0 : tensor<2x8xi32>
}

// A computed right side goes into panels of groups, too, its last groups filled up with zeros.
// CHECK-LABEL: func.func @computed_bytes(
// CHECK: %[[X:.*]] = "xt.pad"(%arg0) {high = [0, 3]
// CHECK: %[[P:.*]] = "xt.pad"(%arg1) {high = [3, 0]
// CHECK: %[[S:.*]] = "xt.reshape"(%[[P]]) {shape = [2, 4, 2, 4]}
// CHECK: %[[W:.*]] = "xt.transpose"(%[[S]]) {perm = [2, 0, 3, 1]}
// CHECK: "xt.packed_matmul"(%[[X]], %[[W]]) {batch = 0 : i64, columns = [8], dtype = i32}
func.func @computed_bytes(%x: tensor<2x5xui8>, %w: tensor<5x8xi8>) -> tensor<2x8xi32> {
  %0 = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x5xui8>, tensor<5x8xi8>) -> tensor<2x8xi32>
  return %0 : tensor<2x8xi32>
}

// Sums of unknown length copy the right side in any case, which gets whole panels, too: no lane of those is off in a product.
// CHECK-LABEL: func.func @unknown_sums(
// CHECK: "xt.pad"(%arg1) {high = ["64*floordiv(k + 63, 64) - k", "4*floordiv(n + 3, 4) - n"]
// CHECK: "xt.packed_matmul"({{.*}} {batch = 0 : i64, columns = ["n"], dtype = i32}
func.func @unknown_sums(%x: tensor<?x?xui8, ["m", "k"]>, %w: tensor<?x?xi8, ["k", "n"]>) -> tensor<?x?xi32, ["m", "n"]> {
  %0 = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<?x?xui8, ["m", "k"]>, tensor<?x?xi8, ["k", "n"]>) -> tensor<?x?xi32, ["m", "n"]>
  return %0 : tensor<?x?xi32, ["m", "n"]>
}

// Columns of whole groups stay together.
// CHECK-LABEL: func.func @unknown_columns(
// CHECK-NOT: "xt.pad"
// CHECK: "xt.dot_general"({{.*}} : (tensor<?x2x4xui8, ["m", 2, 4]>, tensor<2x?x4xi8, [2, "n", 4]>)
func.func @unknown_columns(%x: tensor<?x8xui8, ["m", 8]>, %w: tensor<8x?xi8, [8, "n"]>) -> tensor<?x?xi32, ["m", "n"]> {
  %0 = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<?x8xui8, ["m", 8]>, tensor<8x?xi8, [8, "n"]>) -> tensor<?x?xi32, ["m", "n"]>
  return %0 : tensor<?x?xi32, ["m", "n"]>
}

// A padding before a convolution makes the channels that are missing, and stays stored.
// CHECK-LABEL: func.func @byte_filter(
// CHECK: %[[W:.*]] = "xt.weight"() {name = "g.panels4x4"} : () -> tensor<2x3x3x1x4x4xi8>
// CHECK: %[[X:.*]] = "xt.pad"(%{{.*}}) {high = [0, 1, 1, 1], {{.*}}value = 7.000000e+00 : f64, xcc.stored}
// CHECK-NEXT: "xt.convolution"(%[[X]], %[[W]]) {{.*}}filter = "OHWIoi"
func.func @byte_filter(%x: tensor<1x6x6x3xui8>) -> tensor<1x6x6x8xi32> {
  %p = "xt.pad"(%x) {low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0], mode = "constant", value = 7.0 : f64, xcc.stored} : (tensor<1x6x6x3xui8>) -> tensor<1x8x8x3xui8>
  %w = "xt.weight"() {name = "g"} : () -> tensor<3x3x3x8xi8>
  %0 = "xt.convolution"(%p, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = i32} : (tensor<1x8x8x3xui8>, tensor<3x3x3x8xi8>) -> tensor<1x6x6x8xi32>
  return %0 : tensor<1x6x6x8xi32>
}

// Outputs that make no whole panel are filled up with zeros, which are not stored.
// CHECK-LABEL: func.func @byte_filter_of_three(
// CHECK: %[[W:.*]] = "xt.weight"() {name = "h.panels4x4"} : () -> tensor<1x3x3x1x4x4xi8>
// CHECK: "xt.convolution"(%arg0, %[[W]]) {{.*}}filter = "OHWIoi"{{.*}}outputs = 3 : i64{{.*}} -> tensor<1x4x4x3xi32>
func.func @byte_filter_of_three(%x: tensor<1x6x6x4xui8>) -> tensor<1x4x4x3xi32> {
  %w = "xt.weight"() {name = "h"} : () -> tensor<3x3x4x3xi8>
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = i32} : (tensor<1x6x6x4xui8>, tensor<3x3x4x3xi8>) -> tensor<1x4x4x3xi32>
  return %0 : tensor<1x4x4x3xi32>
}

// A vector multiplies what a transpose would make where it lies: each element is read once.
// CHECK-LABEL: func.func @vector_in_place(
// CHECK-SAME: %[[X:.*]]: tensor<64x1x256xf32>, %[[W:.*]]: tensor<64x512x256xf32>)
// CHECK-NEXT: "xt.dot_general"(%[[X]], %[[W]]) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]}
func.func @vector_in_place(%x: tensor<64x1x256xf32>, %w: tensor<64x512x256xf32>) -> tensor<64x1x512xf32> {
  %t = "xt.transpose"(%w) {perm = [0, 2, 1]} : (tensor<64x512x256xf32>) -> tensor<64x256x512xf32>
  %0 = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x1x256xf32>, tensor<64x256x512xf32>) -> tensor<64x1x512xf32>
  return %0 : tensor<64x1x512xf32>
}

// Few rows times columns that lie along a long sum: dot products of what lies there.
// CHECK-LABEL: func.func @dots(
// CHECK-NOT: xt.transpose
// CHECK: "xt.dot_general"(%arg0, %arg1) {{.*}}rhs_contract = [1]
// CHECK: return
func.func @dots(%x: tensor<5x300xf32>, %v: tensor<128x300xf32>) -> tensor<5x128xf32> {
  %t = "xt.transpose"(%v) {perm = [1, 0]} : (tensor<128x300xf32>) -> tensor<300x128xf32>
  %0 = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<5x300xf32>, tensor<300x128xf32>) -> tensor<5x128xf32>
  return %0 : tensor<5x128xf32>
}

// A short sum is none of those: to add up a vector's lanes takes as long.
// CHECK-LABEL: func.func @short(
// CHECK: "xt.transpose"
// CHECK: return
func.func @short(%x: tensor<5x100xf32>, %v: tensor<128x100xf32>) -> tensor<5x128xf32> {
  %t = "xt.transpose"(%v) {perm = [1, 0]} : (tensor<128x100xf32>) -> tensor<100x128xf32>
  %0 = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<5x100xf32>, tensor<100x128xf32>) -> tensor<5x128xf32>
  return %0 : tensor<5x128xf32>
}

// A filter that is an argument goes into panels by the transpose that it needs anyway.
// CHECK-LABEL: func.func @argument_filter(
// CHECK-SAME: %[[X:.*]]: tensor<1x6x6x3xf32>, %[[W:.*]]: tensor<8x3x3x3xf32>)
// CHECK-NEXT: %[[S:.*]] = "xt.reshape"(%[[W]]) {shape = [2, 4, 3, 3, 3]}
// CHECK-NEXT: %[[P:.*]] = "xt.transpose"(%[[S]]) {perm = [0, 3, 4, 2, 1]} : {{.*}} -> tensor<2x3x3x3x4xf32>
// CHECK-NEXT: "xt.convolution"(%[[X]], %[[P]]) {{.*}}filter = "OHWIo"
func.func @argument_filter(%x: tensor<1x6x6x3xf32>, %g: tensor<8x3x3x3xf32>) -> tensor<1x4x4x8xf32> {
  %w = "xt.transpose"(%g) {perm = [2, 3, 1, 0]} : (tensor<8x3x3x3xf32>) -> tensor<3x3x3x8xf32>
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "HWIO", dtype = f32} : (tensor<1x6x6x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}

// So are columns of 16-bit floats, which are widened in registers.
// CHECK-LABEL: func.func @narrow_dots(
// CHECK-NOT: xt.transpose
// CHECK: "xt.dot_general"(%arg0, %arg1) {{.*}}rhs_contract = [1]
func.func @narrow_dots(%x: tensor<5x300xf32>, %v: tensor<128x300xbf16>) -> tensor<5x128xbf16> {
  %t = "xt.transpose"(%v) {perm = [1, 0]} : (tensor<128x300xbf16>) -> tensor<300x128xbf16>
  %y = "xt.dot_general"(%x, %t) {dtype = bf16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<5x300xf32>, tensor<300x128xbf16>) -> tensor<5x128xbf16>
  return %y : tensor<5x128xbf16>
}

// An input whose columns lie along the sum is turned by the product's kernel, also where it was transposed for it.
// CHECK-LABEL: func.func @turned_later(
// CHECK-NOT: xt.transpose
// CHECK: "xt.dot_general"(%arg0, %arg1) {{.*}}rhs_contract = [1]
// CHECK: "xt.dot_general"(%arg0, %arg1) {{.*}}rhs_contract = [1]
func.func @turned_later(%x: tensor<16x64xf32>, %v: tensor<128x64xf32>) -> (tensor<16x128xf32>, tensor<16x128xf32>) {
  %0 = "xt.dot_general"(%x, %v) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<16x64xf32>, tensor<128x64xf32>) -> tensor<16x128xf32>
  %t = "xt.transpose"(%v) {perm = [1, 0]} : (tensor<128x64xf32>) -> tensor<64x128xf32>
  %1 = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
  return %0, %1 : tensor<16x128xf32>, tensor<16x128xf32>
}

// Many rows, in blocks that would each turn it: once, ahead of the product.
// CHECK-LABEL: func.func @turned_once(
// CHECK: %[[T:.*]] = "xt.transpose"(%arg1)
// CHECK: "xt.dot_general"(%arg0, %[[T]])
func.func @turned_once(%x: tensor<200x64xf32>, %v: tensor<128x64xf32>) -> tensor<200x128xf32> {
  %0 = "xt.dot_general"(%x, %v) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<200x64xf32>, tensor<128x64xf32>) -> tensor<200x128xf32>
  return %0 : tensor<200x128xf32>
}

// What a loop multiplies with goes into panels before it.
// CHECK-LABEL: func.func @steps(
// CHECK: %[[R:.*]] = "xt.reshape"(%arg1) {shape = [2, 4, 8, 1]}
// CHECK: %[[T:.*]] = "xt.transpose"(%[[R]]) {perm = [0, 2, 1, 3]}
// CHECK: %[[P:.*]] = "xt.reshape"(%[[T]]) {shape = [2, 8, 4]}
// CHECK: xtv.scan
// CHECK: "xt.packed_matmul"(%{{.*}}, %[[P]]) {batch = 0 : i64, columns = [8]
func.func @steps(%h: tensor<2x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %y = "xtv.scan"(%h) ({
  ^bb0(%x: tensor<2x8xf32>):
    %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    "xtv.yield"(%0) : (tensor<2x8xf32>) -> ()
  }) {axes = [], length = [9], operandSegmentSizes = array<i32: 1, 0>, out_axes = [], out_reverse = [], reverse = []} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Batches that are added up are blocks of a sum: a panel has all of them for its columns. Narrower numbers are moved.
// CHECK-LABEL: func.func @blocks(
// CHECK: %[[W:.*]] = "xt.convert"({{.*}} : (tensor<2x3x2x4x4xui4>) -> tensor<2x3x2x4x4xui8>
// CHECK: "xt.packed_matmul"(%{{.*}}, %[[W]]) {batch = 1 : i64, columns = [7], dtype = i32, panels_first = true} : (tensor<3x5x8xi8>, tensor<2x3x2x4x4xui8>) -> tensor<3x5x7xi32>
func.func @blocks(%x: tensor<3x5x8xi8>) -> tensor<5x7xi32> {
  %q = "xt.weight"() {name = "q"} : () -> tensor<3x7x8xui4>
  %w = "xt.convert"(%q) {dtype = ui8, saturate = false} : (tensor<3x7x8xui4>) -> tensor<3x7x8xui8>
  %p = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : (tensor<3x5x8xi8>, tensor<3x7x8xui8>) -> tensor<3x5x7xi32>
  %y = "xt.reduce"(%p) {kind = "sum", axes = [0], keepdims = false} : (tensor<3x5x7xi32>) -> tensor<5x7xi32>
  return %y : tensor<5x7xi32>
}

// Matrices that are picked by index lie in panels, all of them, and panels are picked,
// where filling up the last one adds little.
// CHECK-LABEL: func.func @picked(
// CHECK: %[[W:.*]] = "xt.transpose"({{.*}} -> tensor<3x2x5x4xf32>
// CHECK: %[[G:.*]] = "xt.gather"(%[[W]], %arg1)
// CHECK: "xt.packed_matmul"(%arg0, %[[G]]) {batch = 1 : i64, columns = [8], dtype = f32} : (tensor<2x7x5xf32>, tensor<2x2x5x4xf32>) -> tensor<2x7x8xf32>
// CHECK: "xt.dot_general"(
func.func @picked(%x: tensor<2x7x5xf32>, %i: tensor<2xi64>) -> (tensor<2x7x8xf32>, tensor<2x7x5xf32>) {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x8x5xf32>
  %g = "xt.gather"(%w, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<3x8x5xf32>, tensor<2xi64>) -> tensor<2x8x5xf32>
  %y = "xt.dot_general"(%x, %g) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : (tensor<2x7x5xf32>, tensor<2x8x5xf32>) -> tensor<2x7x8xf32>
  %v = "xt.weight"() {name = "v"} : () -> tensor<3x5x5xf32>
  %h = "xt.gather"(%v, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<3x5x5xf32>, tensor<2xi64>) -> tensor<2x5x5xf32>
  %z = "xt.dot_general"(%x, %h) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<2x7x5xf32>, tensor<2x5x5xf32>) -> tensor<2x7x5xf32>
  return %y, %z : tensor<2x7x8xf32>, tensor<2x7x5xf32>
}

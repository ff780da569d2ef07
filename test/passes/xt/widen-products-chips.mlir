// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="widen-products" | filecheck %s

// A CPU that multiplies bf16 wants pairs of it, into which the operand of one row is not brought; a weight lies in them.
// CHECK-LABEL: func.func @row
// CHECK: %[[X:.*]] = "xt.convert"(%arg0) {{.*}} -> tensor<1x64xf32>
// CHECK: "xt.dot_general"(%[[X]], %arg1)
// CHECK: "xt.dot_general"(%arg0, %{{.*}}) {{.*}} : (tensor<1x64xbf16>, tensor<64x32xbf16>)
func.func @row(%x: tensor<1x64xbf16>, %w: tensor<64x32xbf16>) -> (tensor<1x32xbf16>, tensor<1x32xbf16>) {
  %v = "xt.weight"() {name = "v"} : () -> tensor<64x32xbf16>
  %y = "xt.dot_general"(%x, %w) {dtype = bf16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<1x64xbf16>, tensor<64x32xbf16>) -> tensor<1x32xbf16>
  %z = "xt.dot_general"(%x, %v) {dtype = bf16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<1x64xbf16>, tensor<64x32xbf16>) -> tensor<1x32xbf16>
  return %y, %z : tensor<1x32xbf16>, tensor<1x32xbf16>
}

// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: xt.convert
// CHECK: return
func.func @many_rows(%x: tensor<8x64xbf16>, %w: tensor<64x32xbf16>) -> tensor<8x32xbf16> {
  %y = "xt.dot_general"(%x, %w) {dtype = bf16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<8x64xbf16>, tensor<64x32xbf16>) -> tensor<8x32xbf16>
  return %y : tensor<8x32xbf16>
}

// Of a matrix times a computed vector the vector is widened, which the matrix is read for once.
// CHECK-LABEL: func.func @vector
// CHECK: %[[V:.*]] = "xt.convert"(%arg1) {{.*}} -> tensor<64x1xf32>
// CHECK: "xt.dot_general"(%arg0, %[[V]]) {{.*}} : (tensor<8x64xbf16>, tensor<64x1xf32>)
func.func @vector(%x: tensor<8x64xbf16>, %v: tensor<64x1xbf16>) -> tensor<8x1xbf16> {
  %y = "xt.dot_general"(%x, %v) {dtype = bf16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<8x64xbf16>, tensor<64x1xbf16>) -> tensor<8x1xbf16>
  return %y : tensor<8x1xbf16>
}

// A weight that many rows are multiplied with is decoded by its kernel, a panel at a time.
// CHECK-LABEL: func.func @halves
// CHECK: %[[W:.*]] = "xt.weight"
// CHECK-DAG: %[[X:.*]] = "xt.convert"(%arg0) {{.*}} -> tensor<8x64xf32>
// CHECK-DAG: %[[D:.*]] = "xt.convert"(%[[W]]) {{.*}} -> tensor<64x32xf32>
// CHECK: "xt.dot_general"(%[[X]], %[[D]]) {dtype = f16{{.*}} -> tensor<8x32xf16>
// CHECK: %[[R:.*]] = "xt.convert"(%{{.*}}) {{.*}} -> tensor<1x64xf32>
// CHECK: "xt.dot_general"(%[[R]], %[[W]])
func.func @halves(%x: tensor<8x64xf16>, %r: tensor<1x64xf16>) -> (tensor<8x32xf16>, tensor<1x32xf16>) {
  %w = "xt.weight"() {name = "w"} : () -> tensor<64x32xf16>
  %y = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<8x64xf16>, tensor<64x32xf16>) -> tensor<8x32xf16>
  %z = "xt.dot_general"(%r, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<1x64xf16>, tensor<64x32xf16>) -> tensor<1x32xf16>
  return %y, %z : tensor<8x32xf16>, tensor<1x32xf16>
}

// Of groups of several channels an element of the image is multiplied with all of a group's outputs; of one channel
// each, vectors go along both.
// CHECK-LABEL: func.func @groups
// CHECK: %[[X:.*]] = "xt.convert"(%arg0) {{.*}} -> tensor<1x6x6x8xf32>
// CHECK: "xt.convolution"(%[[X]], %arg1) {{.*}}groups = 2
// CHECK: "xt.convolution"(%arg0, %arg2) {{.*}}groups = 8
func.func @groups(%x: tensor<1x6x6x8xbf16>, %w: tensor<3x3x4x8xbf16>, %d: tensor<3x3x1x8xbf16>) -> (tensor<1x4x4x8xbf16>, tensor<1x4x4x8xbf16>) {
  %y = "xt.convolution"(%x, %w) {dtype = bf16, filter = "HWIO", groups = 2 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x6x6x8xbf16>, tensor<3x3x4x8xbf16>) -> tensor<1x4x4x8xbf16>
  %z = "xt.convolution"(%x, %d) {dtype = bf16, filter = "HWIO", groups = 8 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x6x6x8xbf16>, tensor<3x3x1x8xbf16>) -> tensor<1x4x4x8xbf16>
  return %y, %z : tensor<1x4x4x8xbf16>, tensor<1x4x4x8xbf16>
}

// RUN: %xcc_opt %s --pass-pipeline="form-kernels{prologue=broadcast,slice}" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{prologue=broadcast}" --split-input-file | filecheck %s --check-prefix=APART

// The left side of a product with panels is read where it lies, a part of longer rows.
// CHECK-NOT: @slice_0
// CHECK-LABEL: func.func private @packed_matmul_0(
// CHECK: "xt.slice"
// CHECK: "xt.packed_matmul"
// APART: func.func private @slice_0(
// APART-LABEL: func.func private @packed_matmul_0(
func.func @rows(%x: tensor<100x70xbf16>, %w: tensor<1x16x32x2xbf16>) -> tensor<100x9xf32> {
  %s = "xt.slice"(%x) {limits = [100, 32], starts = [0, 0], strides = [1, 1]} : (tensor<100x70xbf16>) -> tensor<100x32xbf16>
  %y = "xt.packed_matmul"(%s, %w) {batch = 0 : i64, columns = [9], dtype = f32} : (tensor<100x32xbf16>, tensor<1x16x32x2xbf16>) -> tensor<100x9xf32>
  return %y : tensor<100x9xf32>
}

// -----
// Not every second element, nor a part that begins at a computed place.
// CHECK: func.func private @slice_0(
// CHECK-LABEL: func.func private @packed_matmul_0(
func.func @steps(%x: tensor<100x70xbf16>, %w: tensor<1x16x32x2xbf16>) -> tensor<100x9xf32> {
  %s = "xt.slice"(%x) {limits = [100, 64], starts = [0, 0], strides = [1, 2]} : (tensor<100x70xbf16>) -> tensor<100x32xbf16>
  %y = "xt.packed_matmul"(%s, %w) {batch = 0 : i64, columns = [9], dtype = f32} : (tensor<100x32xbf16>, tensor<1x16x32x2xbf16>) -> tensor<100x9xf32>
  return %y : tensor<100x9xf32>
}

// -----
// CHECK: func.func private @slice_0(
// CHECK-LABEL: func.func private @packed_matmul_0(
func.func @start(%x: tensor<100x?xbf16, [100, "k"]>, %w: tensor<1x16x32x2xbf16>) -> tensor<100x9xf32> {
  %s = "xt.slice"(%x) {limits = [100, "k"], starts = [0, "k - 32"], strides = [1, 1]} : (tensor<100x?xbf16, [100, "k"]>) -> tensor<100x32xbf16>
  %y = "xt.packed_matmul"(%s, %w) {batch = 0 : i64, columns = [9], dtype = f32} : (tensor<100x32xbf16>, tensor<1x16x32x2xbf16>) -> tensor<100x9xf32>
  return %y : tensor<100x9xf32>
}

// -----
// Lanes of a product of a matrix and a vector lie along the matrix' rows, as long as they are.
// CHECK: func.func private @slice_0(
// CHECK-LABEL: func.func private @dot_general_0(
func.func @vector(%x: tensor<100x70xf32>, %v: tensor<32xf32>) -> tensor<100xf32> {
  %s = "xt.slice"(%x) {limits = [100, 32], starts = [0, 0], strides = [1, 1]} : (tensor<100x70xf32>) -> tensor<100x32xf32>
  %y = "xt.dot_general"(%s, %v) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<100x32xf32>, tensor<32xf32>) -> tensor<100xf32>
  return %y : tensor<100xf32>
}

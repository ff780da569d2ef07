// RUN: %xcc_opt %s --pass-pipeline="form-kernels{prologue=broadcast,once}" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{prologue=broadcast}" --split-input-file | filecheck %s --check-prefix=APART

// A product with a vector reads each element of the matrix once: picking the matrix is no kernel of its own.
// CHECK-LABEL: func.func private @dot_general_0(
// CHECK: "xt.gather"
// CHECK: "xt.tanh"
// CHECK: "xt.dot_general"
// APART-LABEL: func.func private @tanh_0(
// APART-LABEL: func.func private @dot_general_0(
func.func @picked(%w: tensor<8x512x256xf32>, %i: tensor<64xi64>, %x: tensor<64x256x1xf32>) -> tensor<64x512x1xf32> {
  %v = "xt.gather"(%w, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<8x512x256xf32>, tensor<64xi64>) -> tensor<64x512x256xf32>
  %t = "xt.tanh"(%v) : (tensor<64x512x256xf32>) -> tensor<64x512x256xf32>
  %y = "xt.dot_general"(%t, %x) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x512x256xf32>, tensor<64x256x1xf32>) -> tensor<64x512x1xf32>
  return %y : tensor<64x512x1xf32>
}

// -----
// The vector is read for each row, and with two columns so is the matrix.
// CHECK: func.func private @tanh_0(
// CHECK-LABEL: func.func private @dot_general_0(
func.func @vector(%w: tensor<64x512x256xf32>, %x: tensor<64x256x1xf32>) -> tensor<64x512x1xf32> {
  %t = "xt.tanh"(%x) : (tensor<64x256x1xf32>) -> tensor<64x256x1xf32>
  %y = "xt.dot_general"(%w, %t) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x512x256xf32>, tensor<64x256x1xf32>) -> tensor<64x512x1xf32>
  return %y : tensor<64x512x1xf32>
}

// -----
// CHECK: func.func private @tanh_0(
// CHECK-LABEL: func.func private @dot_general_0(
func.func @two_columns(%w: tensor<64x512x256xf32>, %x: tensor<64x256x2xf32>) -> tensor<64x512x2xf32> {
  %t = "xt.tanh"(%w) : (tensor<64x512x256xf32>) -> tensor<64x512x256xf32>
  %y = "xt.dot_general"(%t, %x) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x512x256xf32>, tensor<64x256x2xf32>) -> tensor<64x512x2xf32>
  return %y : tensor<64x512x2xf32>
}

// -----
// Matrices picked by index, one for each of a batch, are read where they lie, whatever they are multiplied with.
// CHECK-LABEL: func.func private @dot_general_0(
// CHECK: "xt.gather"
// APART-LABEL: func.func private @dot_general_0(
// APART: "xt.gather"
func.func @experts(%w: tensor<8x512x256xf32>, %i: tensor<64xi64>, %x: tensor<64x256x32xf32>) -> tensor<64x512x32xf32> {
  %v = "xt.gather"(%w, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<8x512x256xf32>, tensor<64xi64>) -> tensor<64x512x256xf32>
  %y = "xt.dot_general"(%v, %x) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x512x256xf32>, tensor<64x256x32xf32>) -> tensor<64x512x32xf32>
  return %y : tensor<64x512x32xf32>
}

// -----
// Rows picked for a product are made first: each tile would pick them again.
// CHECK: func.func private @gather_0(
// CHECK-LABEL: func.func private @dot_general_0(
func.func @rows(%w: tensor<800x256xf32>, %i: tensor<64xi64>, %x: tensor<256x512xf32>) -> tensor<64x512xf32> {
  %v = "xt.gather"(%w, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<800x256xf32>, tensor<64xi64>) -> tensor<64x256xf32>
  %y = "xt.dot_general"(%v, %x) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<64x256xf32>, tensor<256x512xf32>) -> tensor<64x512xf32>
  return %y : tensor<64x512xf32>
}

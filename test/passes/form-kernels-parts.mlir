// RUN: %xcc_opt %s --pass-pipeline="form-kernels{single=48}" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{single=48 explain}" --split-input-file 2>&1 | filecheck %s --check-prefix=WHY

// Each of the samples would be made for the other's half of the result, too.
// WHY: grid_sample@0 not fused with concatenate@2: inside it would cost 1.{{[0-9]}} times as much as stored and read
// CHECK: func.func private @grid_sample_0(
// CHECK: func.func private @concatenate_0(
// CHECK-NOT: grid_sample
// CHECK: return
func.func @samples(%x: tensor<8x32x32x32xf32>, %g: tensor<8x1360x4x2xf32>, %h: tensor<8x1360x4x2xf32>) -> tensor<8x64x1360x4xf32> {
  %a = "xt.grid_sample"(%x, %g) {align_corners = false, mode = "linear", padding = "zeros"} : (tensor<8x32x32x32xf32>, tensor<8x1360x4x2xf32>) -> tensor<8x32x1360x4xf32>
  %b = "xt.grid_sample"(%x, %h) {align_corners = false, mode = "linear", padding = "zeros"} : (tensor<8x32x32x32xf32>, tensor<8x1360x4x2xf32>) -> tensor<8x32x1360x4xf32>
  %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<8x32x1360x4xf32>, tensor<8x32x1360x4xf32>) -> tensor<8x64x1360x4xf32>
  return %y : tensor<8x64x1360x4xf32>
}

// -----
// A tile across the rows of a concatenation would be read element by element, each operand's.
// CHECK: func.func private @concatenate_0(
// CHECK: func.func private @transpose_0(
// CHECK-NOT: concatenate
// CHECK: return
func.func @turned(%a: tensor<2x256x64x64xf32>, %b: tensor<2x256x64x64xf32>) -> tensor<2x64x64x512xf32> {
  %c = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<2x256x64x64xf32>, tensor<2x256x64x64xf32>) -> tensor<2x512x64x64xf32>
  %y = "xt.transpose"(%c) {perm = [0, 2, 3, 1]} : (tensor<2x512x64x64xf32>) -> tensor<2x64x64x512xf32>
  return %y : tensor<2x64x64x512xf32>
}

// -----
// Rows stay rows, and what is pointwise is read as it is.
// CHECK: func.func private @transpose_0(
// CHECK: xtv.concatenate
// CHECK: return
// CHECK: func.func private @transpose_1(
// CHECK: xt.add
// CHECK: return
func.func @in_order(%a: tensor<2x256x64x64xf32>, %b: tensor<2x256x64x64xf32>) -> (tensor<2x64x512x64xf32>, tensor<2x64x64x256xf32>) {
  %c = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<2x256x64x64xf32>, tensor<2x256x64x64xf32>) -> tensor<2x512x64x64xf32>
  %y = "xt.transpose"(%c) {perm = [0, 2, 1, 3]} : (tensor<2x512x64x64xf32>) -> tensor<2x64x512x64xf32>
  %s = "xt.add"(%a, %b) : (tensor<2x256x64x64xf32>, tensor<2x256x64x64xf32>) -> tensor<2x256x64x64xf32>
  %z = "xt.transpose"(%s) {perm = [0, 2, 3, 1]} : (tensor<2x256x64x64xf32>) -> tensor<2x64x64x256xf32>
  return %y, %z : tensor<2x64x512x64xf32>, tensor<2x64x64x256xf32>
}

// -----
// Rows made of two rows are made once, where columns are picked from them eight times over.
// CHECK: func.func private @add_0(
// CHECK-NOT: axis = 3
// CHECK: return
// CHECK: func.func private @mul_0(
// CHECK: axis = 3
// CHECK: return
func.func @columns(%x: tensor<2x256x8x8xf32>, %i: tensor<64xi64>, %j: tensor<64xi64>) -> tensor<2x256x64x64xf32> {
  %a = "xt.gather"(%x, %i) {axis = 2 : i64, batch_dims = 0 : i64} : (tensor<2x256x8x8xf32>, tensor<64xi64>) -> tensor<2x256x64x8xf32>
  %b = "xt.gather"(%x, %j) {axis = 2 : i64, batch_dims = 0 : i64} : (tensor<2x256x8x8xf32>, tensor<64xi64>) -> tensor<2x256x64x8xf32>
  %r = "xt.add"(%a, %b) : (tensor<2x256x64x8xf32>, tensor<2x256x64x8xf32>) -> tensor<2x256x64x8xf32>
  %c = "xt.gather"(%r, %i) {axis = 3 : i64, batch_dims = 0 : i64} : (tensor<2x256x64x8xf32>, tensor<64xi64>) -> tensor<2x256x64x64xf32>
  %d = "xt.gather"(%r, %j) {axis = 3 : i64, batch_dims = 0 : i64} : (tensor<2x256x64x8xf32>, tensor<64xi64>) -> tensor<2x256x64x64xf32>
  %y = "xt.mul"(%c, %d) : (tensor<2x256x64x64xf32>, tensor<2x256x64x64xf32>) -> tensor<2x256x64x64xf32>
  return %y : tensor<2x256x64x64xf32>
}

// -----
// So it is behind a reshape.
// CHECK: func.func private @grid_sample_0(
// CHECK-NOT: concatenate
// CHECK: return
func.func @stacked(%x: tensor<8x32x32x32xf32>, %g: tensor<8x1360x4x2xf32>, %h: tensor<8x1360x4x2xf32>) -> tensor<8x32x1360x2x4xf32> {
  %a = "xt.grid_sample"(%x, %g) {align_corners = false, mode = "linear", padding = "zeros"} : (tensor<8x32x32x32xf32>, tensor<8x1360x4x2xf32>) -> tensor<8x32x1360x4xf32>
  %b = "xt.grid_sample"(%x, %h) {align_corners = false, mode = "linear", padding = "zeros"} : (tensor<8x32x32x32xf32>, tensor<8x1360x4x2xf32>) -> tensor<8x32x1360x4xf32>
  %c = "xt.reshape"(%a) {shape = [8, 32, 1360, 1, 4]} : (tensor<8x32x1360x4xf32>) -> tensor<8x32x1360x1x4xf32>
  %d = "xt.reshape"(%b) {shape = [8, 32, 1360, 1, 4]} : (tensor<8x32x1360x4xf32>) -> tensor<8x32x1360x1x4xf32>
  %y = "xtv.concatenate"(%c, %d) {axis = 3 : i64} : (tensor<8x32x1360x1x4xf32>, tensor<8x32x1360x1x4xf32>) -> tensor<8x32x1360x2x4xf32>
  return %y : tensor<8x32x1360x2x4xf32>
}

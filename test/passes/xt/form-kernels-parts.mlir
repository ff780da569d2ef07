// RUN: %xcc_opt %s --pass-pipeline="form-kernels{single=48}" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{single=48 explain}" --split-input-file 2>&1 | filecheck %s --check-prefix=WHY
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{single=48 piece=32}" --split-input-file | filecheck %s --check-prefix=PIECE

// Each of the samples would be made for the other's half of the result, too.
// WHY: grid_sample@0 not fused with concatenate@2: it is estimated to take 1.{{[0-9]+}} times as long as apart
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
// A tile across the rows of a concatenation would be read element by element, each operand's; not where it is one's.
// PIECE: func.func private @grid_sample_0(
// PIECE: func.func private @transpose_0(
// PIECE: xtv.concatenate
// PIECE: xt.transpose
// PIECE: return
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
// Operands shorter than a tile stay apart from what turns them.
// PIECE: func.func private @concatenate_0(
// PIECE: func.func private @transpose_0(
func.func @turned_short(%a: tensor<2x8x64x64xf32>, %b: tensor<2x8x64x64xf32>) -> tensor<2x64x64x16xf32> {
  %c = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<2x8x64x64xf32>, tensor<2x8x64x64xf32>) -> tensor<2x16x64x64xf32>
  %y = "xt.transpose"(%c) {perm = [0, 2, 3, 1]} : (tensor<2x16x64x64xf32>) -> tensor<2x64x64x16xf32>
  return %y : tensor<2x64x64x16xf32>
}

// -----
// Each operand is made where it lies, however many there are and dear as they are; not where a tile is of all three.
// PIECE: func.func private @concatenate_0(
// PIECE-COUNT-2: xt.tanh
// PIECE-NOT: xt.tanh
// PIECE: xtv.concatenate
// PIECE: func.func private @tanh_0(
// PIECE-NOT: concatenate
// PIECE: return
// CHECK: func.func private @tanh_0(
// CHECK-NOT: concatenate
// CHECK: return
func.func @dear_pieces(%a: tensor<64x128xf32>, %b: tensor<64x96xf32>, %c: tensor<64x5xf32>) -> (tensor<64x320xf32>, tensor<64x15xf32>) {
  %p = "xt.tanh"(%a) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %q = "xt.tanh"(%b) : (tensor<64x96xf32>) -> tensor<64x96xf32>
  %y = "xtv.concatenate"(%p, %q, %q) {axis = 1 : i64} : (tensor<64x128xf32>, tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x320xf32>
  %r = "xt.tanh"(%c) : (tensor<64x5xf32>) -> tensor<64x5xf32>
  %z = "xtv.concatenate"(%r, %c, %r) {axis = 1 : i64} : (tensor<64x5xf32>, tensor<64x5xf32>, tensor<64x5xf32>) -> tensor<64x15xf32>
  return %y, %z : tensor<64x320xf32>, tensor<64x15xf32>
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

// -----
// Rows that become columns are read element by element behind a concatenation, too: 20 times as slow as stored rows.
// CHECK: func.func private @transpose_0(
// CHECK-NOT: concatenate
// CHECK: return
// CHECK: func.func private @concatenate_0(
// CHECK-NOT: transpose
// CHECK: return
func.func @turned_piece(%a: tensor<1x256x4096xf32>, %b: tensor<1x4096x256xf32>) -> tensor<1x8192x256xf32> {
  %t = "xt.transpose"(%a) {perm = [0, 2, 1]} : (tensor<1x256x4096xf32>) -> tensor<1x4096x256xf32>
  %y = "xtv.concatenate"(%t, %b) {axis = 1 : i64} : (tensor<1x4096x256xf32>, tensor<1x4096x256xf32>) -> tensor<1x8192x256xf32>
  return %y : tensor<1x8192x256xf32>
}

// -----
// Also the largest of several, which are few more elements than it has; few strided rows stay in a cache.
// CHECK-COUNT-3: xtv.dispatch
// CHECK: func.func private @transpose_0(
// CHECK-NOT: concatenate
// CHECK: return
// CHECK: func.func private @concatenate_0(
// CHECK-NOT: transpose
// CHECK: return
// CHECK: func.func private @pad_0(
// CHECK: xt.transpose
// PIECE: func.func private @concatenate_0(
// PIECE: xt.transpose
func.func @largest_piece(%a: tensor<1x256x4096xf32>, %b: tensor<1x1024x256xf32>, %c: tensor<1x3x640x640xf32>) -> (tensor<1x5120x256xf32>, tensor<1x642x642x3xf32>) {
  %t = "xt.transpose"(%a) {perm = [0, 2, 1]} : (tensor<1x256x4096xf32>) -> tensor<1x4096x256xf32>
  %y = "xtv.concatenate"(%t, %b) {axis = 1 : i64} : (tensor<1x4096x256xf32>, tensor<1x1024x256xf32>) -> tensor<1x5120x256xf32>
  %u = "xt.transpose"(%c) {perm = [0, 2, 3, 1]} : (tensor<1x3x640x640xf32>) -> tensor<1x640x640x3xf32>
  %z = "xt.pad"(%u) {low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0], mode = "constant", value = 0.0 : f64} : (tensor<1x640x640x3xf32>) -> tensor<1x642x642x3xf32>
  return %y, %z : tensor<1x5120x256xf32>, tensor<1x642x642x3xf32>
}

// -----
// A row before many that are turned: one tile is of both.
// PIECE: func.func @one_row
// PIECE-COUNT-1: xtv.dispatch
// PIECE-NOT: xtv.dispatch
// PIECE: return
// CHECK: func.func @one_row
// CHECK-COUNT-2: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: return
func.func @one_row(%a: tensor<8x1x768xf32>, %b: tensor<8x768x196xf32>) -> tensor<8x197x768xf32> {
  %t = "xt.transpose"(%b) {perm = [0, 2, 1]} : (tensor<8x768x196xf32>) -> tensor<8x196x768xf32>
  %y = "xtv.concatenate"(%a, %t) {axis = 1 : i64} : (tensor<8x1x768xf32>, tensor<8x196x768xf32>) -> tensor<8x197x768xf32>
  return %y : tensor<8x197x768xf32>
}

// -----
// Transposes on both sides of what picks rows and columns leave rows as they lie: together they are read in vectors,
// though no two of these ops are.
// CHECK-COUNT-1: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: func.func private
func.func @turned_and_back(%a: tensor<1x64x64x32xf32>, %b: tensor<1x32x32x32xf32>, %i: tensor<64xi64>) -> tensor<1x64x64x64xf32> {
  %s = "xt.transpose"(%a) {perm = [0, 3, 1, 2]} : (tensor<1x64x64x32xf32>) -> tensor<1x32x64x64xf32>
  %t = "xt.transpose"(%b) {perm = [0, 3, 1, 2]} : (tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %h = "xt.gather"(%t, %i) {axis = 2 : i64, batch_dims = 0 : i64} : (tensor<1x32x32x32xf32>, tensor<64xi64>) -> tensor<1x32x64x32xf32>
  %w = "xt.gather"(%h, %i) {axis = 3 : i64, batch_dims = 0 : i64} : (tensor<1x32x64x32xf32>, tensor<64xi64>) -> tensor<1x32x64x64xf32>
  %c = "xtv.concatenate"(%s, %w) {axis = 1 : i64} : (tensor<1x32x64x64xf32>, tensor<1x32x64x64xf32>) -> tensor<1x64x64x64xf32>
  %y = "xt.transpose"(%c) {perm = [0, 2, 3, 1]} : (tensor<1x64x64x64xf32>) -> tensor<1x64x64x64xf32>
  return %y : tensor<1x64x64x64xf32>
}

// -----
// What is dear and needed at eight places of a row is made once.
// WHY: exp@0 not fused with slice@1: it is estimated to take {{[1-9]}}.{{[0-9]+}} times as long as apart
// CHECK: func.func private @exp_0(
// CHECK-NOT: slice
// CHECK: return
// CHECK: func.func private @add_0(
// CHECK-COUNT-8: xt.slice
func.func @shifted(%x: tensor<64x1031xf32>) -> tensor<64x1024xf32> {
  %e = "xt.exp"(%x) : (tensor<64x1031xf32>) -> tensor<64x1031xf32>
  %s0 = "xt.slice"(%e) {starts = [0, 0], limits = [64, 1024], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s1 = "xt.slice"(%e) {starts = [0, 1], limits = [64, 1025], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s2 = "xt.slice"(%e) {starts = [0, 2], limits = [64, 1026], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s3 = "xt.slice"(%e) {starts = [0, 3], limits = [64, 1027], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s4 = "xt.slice"(%e) {starts = [0, 4], limits = [64, 1028], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s5 = "xt.slice"(%e) {starts = [0, 5], limits = [64, 1029], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s6 = "xt.slice"(%e) {starts = [0, 6], limits = [64, 1030], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %s7 = "xt.slice"(%e) {starts = [0, 7], limits = [64, 1031], strides = [1, 1]} : (tensor<64x1031xf32>) -> tensor<64x1024xf32>
  %t1 = "xt.add"(%s0, %s1) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t2 = "xt.add"(%t1, %s2) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t3 = "xt.add"(%t2, %s3) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t4 = "xt.add"(%t3, %s4) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t5 = "xt.add"(%t4, %s5) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t6 = "xt.add"(%t5, %s6) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %t7 = "xt.add"(%t6, %s7) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %t7 : tensor<64x1024xf32>
}

// -----
// So is what each of many rows needs; where it is cheap, they make it.
// CHECK: func.func private @exp_0(%{{.*}}: tensor<1024xf32>)
// CHECK: func.func private @mul_0(
// CHECK-NOT: xt.exp
// CHECK: xt.abs
// CHECK: xt.mul
func.func @each_row(%x: tensor<4096x1024xf32>, %r: tensor<1024xf32>) -> (tensor<4096x1024xf32>, tensor<4096x1024xf32>) {
  %e = "xt.exp"(%r) : (tensor<1024xf32>) -> tensor<1024xf32>
  %a = "xt.abs"(%x) : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  %y = "xt.mul"(%a, %e) : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>
  return %y, %a : tensor<4096x1024xf32>, tensor<4096x1024xf32>
}

// -----
// A sum is stored for wide windows, which need each of its elements often, and made in narrow ones.
// CHECK: func.func private @add_0(
// CHECK-NOT: reduce_window
// CHECK: return
// CHECK: func.func private @reduce_window_0(
// CHECK-NOT: xt.add
// CHECK: return
// CHECK: func.func private @reduce_window_1(
// CHECK: xt.add
func.func @windows(%a: tensor<8x64x64xf32>, %b: tensor<8x64x64xf32>) -> (tensor<8x50x50xf32>, tensor<8x31x31xf32>) {
  %s = "xt.add"(%a, %b) : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %y = "xt.reduce_window"(%s) {kind = "max", window = [1, 15, 15], strides = [1, 1, 1], low = [0, 0, 0], high = [0, 0, 0], dilations = [1, 1, 1]} : (tensor<8x64x64xf32>) -> tensor<8x50x50xf32>
  %t = "xt.sub"(%a, %b) : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %u = "xt.add"(%t, %b) : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %z = "xt.reduce_window"(%u) {kind = "max", window = [1, 3, 3], strides = [1, 2, 2], low = [0, 0, 0], high = [0, 0, 0], dilations = [1, 1, 1]} : (tensor<8x64x64xf32>) -> tensor<8x31x31xf32>
  return %y, %z : tensor<8x50x50xf32>, tensor<8x31x31xf32>
}

// -----
// An image is turned and gets its border in one go: a pad that is stored computes no places.
// CHECK: func.func private @pad_0(
// CHECK-NEXT: "xt.transpose"
// CHECK-NEXT: "xt.pad"
func.func @turned_with_border(%x: tensor<1x96x56x56xf32>) -> tensor<1x62x62x96xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 2, 3, 1]} : (tensor<1x96x56x56xf32>) -> tensor<1x56x56x96xf32>
  %y = "xt.pad"(%t) {high = [0, 3, 3, 0], interior = [0, 0, 0, 0], low = [0, 3, 3, 0], mode = "constant", value = 0.0 : f64, xcc.stored} : (tensor<1x56x56x96xf32>) -> tensor<1x62x62x96xf32>
  return %y : tensor<1x62x62x96xf32>
}

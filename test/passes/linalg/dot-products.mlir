// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure, %loops, tile, mlir(canonicalize, cse)" | filecheck %s

// A product of bytes in groups of 4: a tile of 14 x 32 over groups, a contract for each. Each tile of rows asks for its
// share of the next panel. Eight panels for 16 cores: a chunk is half of the rows.
// CHECK-LABEL: func.func private @bytes(
// CHECK-SAME: %[[X:[^:]*]]: memref<48x512xi8>, %[[W:[^:]*]]: memref<8x128x32x4xi8>
// CHECK-SAME: xcc.config = {{.*}}block = array<i64: 24, 32>, cpu = {dot = true{{.*}}shares = 2{{.*}}reduce = [array<i64: 1, 4>]{{.*}}vector = array<i64: 12, 32>
// CHECK: scf.for {{.*}} -> (vector<12x32xi32>)
// CHECK: %[[FLAT:.*]] = memref.{{.*}} : memref<8x128x32x4xi8> {{.*}}memref<131072xi8
// CHECK: memref.prefetch %[[FLAT]][%{{.*}}], read, locality<2>
// CHECK: %[[A:.*]] = vector.transfer_read %[[X]]{{.*}}vector<12x4xi8>
// CHECK: %[[B:.*]] = vector.transfer_read %[[W]]{{.*}}vector<32x4xi8>
// CHECK: vector.contract {{.*}} %[[A]], %[[B]], {{.*}} {xcc.unsigned = array<i64: 0>} : vector<12x4xi8>, vector<32x4xi8> into vector<12x32xi32>
func.func private @bytes(%x: tensor<48x512xui8>, %w: tensor<8x128x32x4xi8>) -> tensor<48x256xi32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.packed_matmul"(%x, %w) {batch = 0 : i64, columns = [256], dtype = i32} : (tensor<48x512xui8>, tensor<8x128x32x4xi8>) -> tensor<48x256xi32>
  return %0 : tensor<48x256xi32>
}

// One row: the groups are summed by the same instruction, no lanes are left to combine.
// CHECK-LABEL: func.func private @row(
// CHECK: vector.contract {{.*}} : vector<4xi8>, vector<32x4xi8> into vector<32xi32>
// CHECK-NOT: vector.multi_reduction
func.func private @row(%x: tensor<1x512xui8>, %w: tensor<8x128x32x4xi8>) -> tensor<1x256xi32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.packed_matmul"(%x, %w) {batch = 0 : i64, columns = [256], dtype = i32} : (tensor<1x512xui8>, tensor<8x128x32x4xi8>) -> tensor<1x256xi32>
  return %0 : tensor<1x256xi32>
}

// Pairs of bf16, in a convolution: the bytes of a pair lie together in the image and in the filter.
// CHECK-LABEL: func.func private @pairs(
// CHECK: vector.contract {{.*}} : vector<{{.*}}x2xbf16>, vector<32x2xbf16> into vector<{{.*}}x32xf32>
func.func private @pairs(%x: tensor<1x9x9x16xbf16>, %w: tensor<2x3x3x8x32x2xbf16>) -> tensor<1x7x7x64xbf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1 : i64, outputs = 0 : i64, layout = "NHWC", filter = "OHWIoi", dtype = bf16} : (tensor<1x9x9x16xbf16>, tensor<2x3x3x8x32x2xbf16>) -> tensor<1x7x7x64xbf16>
  return %0 : tensor<1x7x7x64xbf16>
}

// Blocks of a sum: a tile of sums of bytes is made for each block, and a second tile adds up the blocks. Two
// groups share each byte of the weights: the steps of a block are written out.
// CHECK-LABEL: func.func private @blocks(
// CHECK-SAME: vector = array<i64: 5, 32>
// CHECK: scf.for {{.*}} -> (vector<5x32xf32>)
// CHECK-NOT: scf.for
// CHECK: %[[W:.*]] = vector.transfer_read %arg1[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]{{.*}}vector<32x4xi8>
// CHECK-COUNT-4: vector.contract {{.*}} {xcc.unsigned = array<i64: 1>} : vector<5x4xi8>, vector<32x4xi8> into vector<5x32xi32>
// CHECK-NOT: vector.contract
// CHECK: arith.sitofp
func.func private @blocks(%x: tensor<16x5x16xi8>, %w: tensor<2x16x2x32x4xui8>, %s: tensor<16x1x64xf32>) -> tensor<5x64xf32> attributes {xt.kernel, xt.symbols = []} {
  %u = "xt.unpack"(%w) {axis = 2 : i64, size = [4], dtype = ui4} : (tensor<2x16x2x32x4xui8>) -> tensor<2x16x4x32x4xui4>
  %b = "xt.convert"(%u) {dtype = ui8, saturate = false} : (tensor<2x16x4x32x4xui4>) -> tensor<2x16x4x32x4xui8>
  %p = "xt.packed_matmul"(%x, %b) {batch = 1 : i64, columns = [64], dtype = i32, panels_first = true} : (tensor<16x5x16xi8>, tensor<2x16x4x32x4xui8>) -> tensor<16x5x64xi32>
  %f = "xt.convert"(%p) {dtype = f32, saturate = false} : (tensor<16x5x64xi32>) -> tensor<16x5x64xf32>
  %m = "xt.mul"(%f, %s) : (tensor<16x5x64xf32>, tensor<16x1x64xf32>) -> tensor<16x5x64xf32>
  %y = "xt.reduce"(%m) {axes = [0], keepdims = false, kind = "sum"} : (tensor<16x5x64xf32>) -> tensor<5x64xf32>
  return %y : tensor<5x64xf32>
}

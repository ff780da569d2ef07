// RUN: %xcc_opt %s --target=cpu --chip=znver5,cores=2 --pass-pipeline="xt-to-linalg, configure, %loops, tile, mlir(canonicalize), mlir(cse)" | filecheck %s

// A chunk of two rows of tiles keeps its patches and products, in memory of its own: whole patches at a time, products in
// tiles of 2 x 4 rows and a panel, results in whole tiles.
// CHECK-LABEL: func.func private @tiles(
// CHECK-SAME: %[[X:.*]]: memref<10x10x32xf32>, %[[W:.*]]: memref<4x4x2x32x32xf32>, %[[Y:.*]]: memref<8x8x64xf32>
// CHECK-SAME: kept = [{op = 1 : i64, order = array<i64: 2, 3, 0, 1, 4>, vector = array<i64: 4, 4, 1, 1, 16>}, {op = 2 : i64, order = array<i64: 0, 1, 4, 2, 3>, vector = array<i64: 1, 1, 2, 4, 32>}]
// CHECK: scf.forall (%[[LOW:.*]]) = (0) to (8) step (4)
// CHECK: %[[V:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4x4x2x4x32xf32>
// CHECK: %[[M:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4x4x2x4x64xf32>
// CHECK-COUNT-16: vector.transfer_read %[[X]]
// CHECK-NOT: vector.transfer_read
// CHECK: vector.transfer_write %{{.*}}, %[[V]]{{.*}} : vector<4x4x16xf32>
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<2x4x32xf32>)
// CHECK: memref.prefetch %[[W]]
// CHECK: vector.transfer_read %[[V]]{{.*}} vector<2x4xf32>
// CHECK: vector.transfer_read %[[W]]{{.*}} vector<32xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[M]]
// CHECK-COUNT-16: vector.transfer_read %[[M]]
// CHECK-NOT: vector.transfer_read
// CHECK: vector.transfer_write %{{.*}}, %[[Y]]{{.*}} : vector<2x2x16xf32>
func.func private @tiles(%x: tensor<1x10x10x32xf32>, %w: tensor<4x4x2x32x32xf32>) -> tensor<1x8x8x64xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.winograd_convolution"(%x, %w) {outputs = 64 : i64, spatial = [8, 8], tile = 2 : i64} : (tensor<1x10x10x32xf32>, tensor<4x4x2x32x32xf32>) -> tensor<1x8x8x64xf32>
  return %0 : tensor<1x8x8x64xf32>
}

// A chunk of outputs begins with a panel of the filter: its columns are read as they lie. Patches of 16 elements would
// all lie in one set of the L1 cache, so their rows are a line longer.
// CHECK-LABEL: func.func private @outputs(
// CHECK-SAME: %{{.*}}: memref<10x10x512xf32>, %[[W:.*]]: memref<4x4x16x512x32xf32>
// CHECK: scf.forall ({{.*}}512) step (
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4x4x{{.*}}x528xf32>
// CHECK-NOT: vector.gather
// CHECK: vector.transfer_read %[[W]]{{.*}} vector<32xf32>
// CHECK-NOT: vector.gather
func.func private @outputs(%x: tensor<1x10x10x512xf32>, %w: tensor<4x4x16x512x32xf32>) -> tensor<1x8x8x512xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.winograd_convolution"(%x, %w) {outputs = 512 : i64, spatial = [8, 8], tile = 2 : i64} : (tensor<1x10x10x512xf32>, tensor<4x4x16x512x32xf32>) -> tensor<1x8x8x512xf32>
  return %0 : tensor<1x8x8x512xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize), join-columns, configure, tile" | filecheck %s

// A second result that says something of each row is stored by the nest of the rows.
// CHECK-LABEL: func.func private @sums(
// CHECK: scf.forall (%{{.*}}) in (8) {
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %[[ROW:.*]], %{{.*}} [0] : vector<4096xf32> to f32
// CHECK: memref.store %[[SUM]]
// CHECK: vector.transfer_write %[[ROW]], {{.*}} : vector<4096xf32>, memref<8x4096xf32>
// CHECK-NOT: scf.forall
func.func private @sums(%x: tensor<2x4x64x64xf32>, %y: tensor<2x4x64x64xf32>) -> (tensor<2x4x64x64xf32>, tensor<2x4x1x1xf32>) attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.add"(%x, %y) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
  %1 = "xt.reduce"(%0) {axes = [2, 3], keepdims = true, kind = "sum"} : (tensor<2x4x64x64xf32>) -> tensor<2x4x1x1xf32>
  return %0, %1 : tensor<2x4x64x64xf32>, tensor<2x4x1x1xf32>
}

// So are those of one element a row: the mean that a gradient needs.
// CHECK-LABEL: func.func private @mean(
// CHECK: scf.forall
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %{{.*}} [1] : vector<4x1024xf32> to vector<4xf32>
// CHECK: %[[MEAN:.*]] = arith.mulf %[[SUM]], %{{.*}} : vector<4xf32>
// CHECK: vector.transfer_write %[[MEAN]], {{.*}}memref<4096xf32>
// CHECK: vector.transfer_write {{.*}} : vector<4x1024xf32>, memref<4096x768xf32>
// CHECK-NOT: scf.forall
func.func private @mean(%x: tensor<4096x768xf32>) -> (tensor<4096x768xf32>, tensor<4096x1xf32>) attributes {xt.kernel, xt.symbols = []} {
  %c = "xt.constant"() {value = dense<0.0013020834> : tensor<f32>} : () -> tensor<f32>
  %0 = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4096x768xf32>) -> tensor<4096x1xf32>
  %1 = "xt.mul"(%0, %c) : (tensor<4096x1xf32>, tensor<f32>) -> tensor<4096x1xf32>
  %2 = "xt.sub"(%x, %1) : (tensor<4096x768xf32>, tensor<4096x1xf32>) -> tensor<4096x768xf32>
  return %2, %1 : tensor<4096x768xf32>, tensor<4096x1xf32>
}

// One that sums other dims has a nest of its own, with room for a row at a time beside the lanes that each sums, not for
// as many rows as a row has elements.
// CHECK-LABEL: func.func private @columns(
// CHECK: scf.forall
// CHECK: vector.transfer_write
// CHECK: scf.forall (%{{.*}}) in (64
func.func private @columns(%x: tensor<2x4x64x64xf32>, %y: tensor<2x4x64x64xf32>) -> (tensor<2x4x64x64xf32>, tensor<1x1x64x1xf32>) attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.add"(%x, %y) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
  %1 = "xt.reduce"(%0) {axes = [0, 1, 3], keepdims = true, kind = "sum"} : (tensor<2x4x64x64xf32>) -> tensor<1x1x64x1xf32>
  return %0, %1 : tensor<2x4x64x64xf32>, tensor<1x1x64x1xf32>
}

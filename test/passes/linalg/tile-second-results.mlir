// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize), join-columns, configure, tile" | filecheck %s

// A second result that sums rows of two dims has a nest of its own, with room for a row at a time beside the lanes that
// each sums, not for as many rows as a row has elements.
// CHECK-LABEL: func.func private @sums(
// CHECK: scf.forall (%{{.*}}) in (8) {
// CHECK: vector.transfer_write {{.*}} : vector<4096xf32>, memref<8x4096xf32>
// CHECK: scf.forall (%{{.*}}) in (8) {
// CHECK: vector.multi_reduction <add>, {{.*}} : vector<4096xf32> to f32
func.func private @sums(%x: tensor<2x4x64x64xf32>, %y: tensor<2x4x64x64xf32>) -> (tensor<2x4x64x64xf32>, tensor<2x4x1x1xf32>) attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.add"(%x, %y) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
  %1 = "xt.reduce"(%0) {axes = [2, 3], keepdims = true, kind = "sum"} : (tensor<2x4x64x64xf32>) -> tensor<2x4x1x1xf32>
  return %0, %1 : tensor<2x4x64x64xf32>, tensor<2x4x1x1xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize), join-columns, configure, tile, mlir(canonicalize)" | filecheck %s

// Rows that registers do not keep: the maximum and the sum relative to it in one walk, ahead of the walk that stores.
// What training keeps of each row is stored between the two.
// CHECK-LABEL: func.func private @log_softmax(
// CHECK: scf.forall (%[[ROW:.*]]) in (512) {
// CHECK: %[[SUMS:.*]]:2 = scf.for %{{.*}} step %{{.*}} iter_args(%[[MOST:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (f32, f32) {
// CHECK: vector.multi_reduction <maxnumf>, %{{.*}}, %[[MOST]] [0] : vector<8192xf32> to f32
// CHECK: vector.multi_reduction <add>
// CHECK: memref.store %{{.*}}[%[[ROW]]] : memref<512xf32>
// CHECK: scf.for
// CHECK-NOT: multi_reduction
// CHECK: vector.transfer_write
func.func private @log_softmax(%x: tensor<512x50257xf16>) -> (tensor<512x50257xf32>, tensor<512x1xf32>) attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convert"(%x) {dtype = f32, saturate = false} : (tensor<512x50257xf16>) -> tensor<512x50257xf32>
  %1 = "xt.reduce"(%0) {axes = [1], keepdims = true, kind = "max"} : (tensor<512x50257xf32>) -> tensor<512x1xf32>
  %2 = "xt.sub"(%0, %1) : (tensor<512x50257xf32>, tensor<512x1xf32>) -> tensor<512x50257xf32>
  %3 = "xt.exp"(%2) : (tensor<512x50257xf32>) -> tensor<512x50257xf32>
  %4 = "xt.reduce"(%3) {axes = [1], keepdims = true, kind = "sum"} : (tensor<512x50257xf32>) -> tensor<512x1xf32>
  %5 = "xt.log"(%4) : (tensor<512x1xf32>) -> tensor<512x1xf32>
  %6 = "xt.sub"(%2, %5) : (tensor<512x50257xf32>, tensor<512x1xf32>) -> tensor<512x50257xf32>
  return %6, %5 : tensor<512x50257xf32>, tensor<512x1xf32>
}

// Nothing is stored along the row: it is read once.
// CHECK-LABEL: func.func private @log_sums(
// CHECK: scf.for {{.*}} -> (f32, f32) {
// CHECK: vector.multi_reduction <maxnumf>, {{.*}} : vector<4096xf32> to f32
// CHECK-NOT: scf.for
func.func private @log_sums(%x: tensor<512x50257xf32>) -> tensor<512x1xf32> attributes {xt.kernel, xt.symbols = []} {
  %1 = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "max"} : (tensor<512x50257xf32>) -> tensor<512x1xf32>
  %2 = "xt.sub"(%x, %1) : (tensor<512x50257xf32>, tensor<512x1xf32>) -> tensor<512x50257xf32>
  %3 = "xt.exp"(%2) : (tensor<512x50257xf32>) -> tensor<512x50257xf32>
  %4 = "xt.reduce"(%3) {axes = [1], keepdims = true, kind = "sum"} : (tensor<512x50257xf32>) -> tensor<512x1xf32>
  %5 = "xt.log"(%4) : (tensor<512x1xf32>) -> tensor<512x1xf32>
  %6 = "xt.add"(%5, %1) : (tensor<512x1xf32>, tensor<512x1xf32>) -> tensor<512x1xf32>
  return %6 : tensor<512x1xf32>
}

// RUN: %xcc_opt %s --split-input-file --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s

// One loop over the queries makes both gradients of 64 keys; what it reads of queries serves two products. It begins
// at the first query that sees one of the keys, and hides others only where there are any.
// CHECK-LABEL: @keys
// CHECK: gpu = {stages = 2 : i64, threads = 128 : i64, warpgroup = true}
// CHECK: scf.forall
// CHECK: %[[FIRST:.*]] = arith.muli
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} -> (vector<64x64xf32>, vector<64x64xf32>)
// CHECK: %[[Q:.*]] = vector.transfer_read %arg1{{.*}} vector<32x64xf16>
// CHECK: vector.contract {{.*}} into vector<64x32xf32>
// CHECK: %[[G:.*]] = vector.transfer_read %arg0{{.*}} vector<32x64xf16>
// CHECK: vector.contract {{.*}} into vector<64x32xf32>
// CHECK: scf.if
// CHECK: math.fma
// CHECK: math.exp2
// CHECK: vector.contract {{.*}}, %[[G]], {{.*}} into vector<64x64xf32>
// CHECK: vector.contract {{.*}}, %[[Q]], {{.*}} into vector<64x64xf32>
// CHECK-NOT: scf.for
func.func private @keys(%g: tensor<2x4x512x64xf16>, %q: tensor<2x4x512x64xf16>, %k: tensor<2x4x512x64xf16>, %v: tensor<2x4x512x64xf16>, %s: tensor<2x4x512xf32>, %d: tensor<2x4x512xf32>) -> (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) attributes {xt.kernel, xt.symbols = []} {
  %y:2 = "xt.attention_key_gradients"(%g, %q, %k, %v, %s, %d) {scale = 0.125 : f64, causal = true} : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512xf32>, tensor<2x4x512xf32>) -> (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>)
  return %y#0, %y#1 : tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>
}

// -----

// The loop over the keys ends where 64 queries see none, tiles with the most keys come first, and what is of queries
// alone is read and computed ahead of it.
// CHECK-LABEL: @queries
// CHECK: gpu = {
// CHECK: scf.forall
// CHECK: vector.transfer_read %arg5{{.*}} vector<64xf32>
// CHECK: arith.mulf {{.*}} : vector<64xf32>
// CHECK: %[[LAST:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %c0 to %[[LAST]] {{.*}} -> (vector<64x64xf32>)
// CHECK-COUNT-3: vector.contract
func.func private @queries(%g: tensor<2x4x512x64xf16>, %q: tensor<2x4x512x64xf16>, %k: tensor<2x4x512x64xf16>, %v: tensor<2x4x512x64xf16>, %s: tensor<2x4x512xf32>, %d: tensor<2x4x512xf32>) -> tensor<2x4x512x64xf16> attributes {xt.kernel, xt.symbols = []} {
  %y = "xt.attention_query_gradient"(%g, %q, %k, %v, %s, %d) {scale = 0.125 : f64, causal = true} : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512xf32>, tensor<2x4x512xf32>) -> tensor<2x4x512x64xf16>
  return %y : tensor<2x4x512x64xf16>
}

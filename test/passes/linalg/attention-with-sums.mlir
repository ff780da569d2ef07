// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s

// One pass over the keys makes the results of 64 queries and the logs of their sums.
// CHECK-LABEL: @attention
// CHECK: scf.forall
// CHECK: %[[SUMS:.*]]:3 = scf.for
// CHECK: vector.contract
// CHECK: vector.contract
// CHECK: vector.transfer_write {{.*}} : vector<64x64xf16>
// CHECK: math.log %[[SUMS]]#
// CHECK: vector.transfer_write {{.*}} : vector<64xf32>
// CHECK-NOT: scf.forall
func.func private @attention(%q: tensor<2x4x128x64xf16>, %k: tensor<2x4x512x64xf16>, %v: tensor<2x4x512x64xf16>) -> (tensor<2x4x128x64xf16>, tensor<2x4x128xf32>) attributes {xt.kernel, xt.symbols = []} {
  %y:2 = "xt.attention_with_sums"(%q, %k, %v) {scale = 0.125 : f64, causal = false} : (tensor<2x4x128x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> (tensor<2x4x128x64xf16>, tensor<2x4x128xf32>)
  return %y#0, %y#1 : tensor<2x4x128x64xf16>, tensor<2x4x128xf32>
}

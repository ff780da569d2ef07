// RUN: %xcc_opt %s --pass-pipeline='xt-decompose{keep=attention}' --split-input-file | filecheck %s

// Many queries: a kernel of its own.
// CHECK-LABEL: func.func @prefill(
// CHECK: xt.attention
func.func @prefill(%q: tensor<1x2x16x8xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32>
  return %0 : tensor<1x2x16x8xf32>
}

// -----

// One query: no rows share the keys, so the parts stay apart.
// CHECK-LABEL: func.func @decode(
// CHECK-NOT: xt.attention
// CHECK: xt.dot_general
func.func @decode(%q: tensor<1x2x1x8xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x16x8xf32>) -> tensor<1x2x1x8xf32> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<1x2x1x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> tensor<1x2x1x8xf32>
  return %0 : tensor<1x2x1x8xf32>
}

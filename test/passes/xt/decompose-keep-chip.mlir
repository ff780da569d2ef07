// RUN: %xcc_opt %s --pass-pipeline='xt-decompose{keep=attention}' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s

// One query of as many heads as there are cores: a kernel of its own, and the causal mask hides nothing.
// CHECK-LABEL: func.func @decode(
// CHECK: "xt.attention"{{.*}}causal = false{{.*}}tensor<8x32x1x64xf16>, tensor<8x32x100x64xf16>
func.func @decode(%q: tensor<8x32x1x64xf16>, %k: tensor<8x32x100x64xf16>, %v: tensor<8x32x100x64xf16>) -> tensor<8x32x1x64xf16> {
  %0 = "xt.attention"(%q, %k, %v) {causal = true, causal_offset = [99], scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<8x32x1x64xf16>, tensor<8x32x100x64xf16>, tensor<8x32x100x64xf16>) -> tensor<8x32x1x64xf16>
  return %0 : tensor<8x32x1x64xf16>
}

// -----

// The heads that share keys become queries of one head.
// CHECK-LABEL: func.func @grouped(
// CHECK: %[[Q:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<32x8x4x64xf16>
// CHECK: %[[Y:.*]] = "xt.attention"(%[[Q]], {{.*}} -> tensor<32x8x4x64xf16>
// CHECK: "xt.reshape"(%[[Y]]) {{.*}} -> tensor<32x32x1x64xf16>
func.func @grouped(%q: tensor<32x32x1x64xf16>, %k: tensor<32x8x100x64xf16>, %v: tensor<32x8x100x64xf16>) -> tensor<32x32x1x64xf16> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<32x32x1x64xf16>, tensor<32x8x100x64xf16>, tensor<32x8x100x64xf16>) -> tensor<32x32x1x64xf16>
  return %0 : tensor<32x32x1x64xf16>
}

// -----

// Few heads: the parts stay apart.
// CHECK-LABEL: func.func @few(
// CHECK-NOT: xt.attention
func.func @few(%q: tensor<1x32x1x64xf16>, %k: tensor<1x32x100x64xf16>, %v: tensor<1x32x100x64xf16>) -> tensor<1x32x1x64xf16> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<1x32x1x64xf16>, tensor<1x32x100x64xf16>, tensor<1x32x100x64xf16>) -> tensor<1x32x1x64xf16>
  return %0 : tensor<1x32x1x64xf16>
}

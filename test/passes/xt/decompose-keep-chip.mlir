// RUN: %xcc_opt %s --pass-pipeline='xt-decompose{keep=attention,attention_query_gradient}' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s

// One query, products that matrix instructions take: a kernel of its own, and the causal mask hides nothing.
// CHECK-LABEL: func.func @decode(
// CHECK: "xt.attention"{{.*}}causal = false{{.*}}tensor<8x32x1x64xf16>, tensor<8x32x100x64xf16>
func.func @decode(%q: tensor<8x32x1x64xf16>, %k: tensor<8x32x100x64xf16>, %v: tensor<8x32x100x64xf16>) -> tensor<8x32x1x64xf16> {
  %0 = "xt.attention"(%q, %k, %v) {causal = true, causal_offset = [99], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<8x32x1x64xf16>, tensor<8x32x100x64xf16>, tensor<8x32x100x64xf16>) -> tensor<8x32x1x64xf16>
  return %0 : tensor<8x32x1x64xf16>
}

// -----

// The heads that share keys become queries of one head.
// CHECK-LABEL: func.func @grouped(
// CHECK: %[[Q:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<32x8x4x64xf16>
// CHECK: %[[Y:.*]] = "xt.attention"(%[[Q]], {{.*}} -> tensor<32x8x4x64xf16>
// CHECK: "xt.reshape"(%[[Y]]) {{.*}} -> tensor<32x32x1x64xf16>
func.func @grouped(%q: tensor<32x32x1x64xf16>, %k: tensor<32x8x100x64xf16>, %v: tensor<32x8x100x64xf16>) -> tensor<32x32x1x64xf16> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<32x32x1x64xf16>, tensor<32x8x100x64xf16>, tensor<32x8x100x64xf16>) -> tensor<32x32x1x64xf16>
  return %0 : tensor<32x32x1x64xf16>
}

// -----

// f32 has no such instructions: the parts stay apart.
// CHECK-LABEL: func.func @simt(
// CHECK-NOT: xt.attention
func.func @simt(%q: tensor<8x32x1x64xf32>, %k: tensor<8x32x100x64xf32>, %v: tensor<8x32x100x64xf32>) -> tensor<8x32x1x64xf32> {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<8x32x1x64xf32>, tensor<8x32x100x64xf32>, tensor<8x32x100x64xf32>) -> tensor<8x32x1x64xf32>
  return %0 : tensor<8x32x1x64xf32>
}

// -----

// Gradients whose scores would be 200 MB are a kernel; of f32 they are products, and of wide heads.
// CHECK-LABEL: func.func @gradient(
// CHECK: "xt.attention_query_gradient"
func.func @gradient(%x: tensor<8x12x1024x64xf16>, %s: tensor<8x12x1024xf32>) -> tensor<8x12x1024x64xf16> {
  %0 = "xt.attention_query_gradient"(%x, %x, %x, %x, %s, %s) {causal = false, scale = 1.0 : f64} : (tensor<8x12x1024x64xf16>, tensor<8x12x1024x64xf16>, tensor<8x12x1024x64xf16>, tensor<8x12x1024x64xf16>, tensor<8x12x1024xf32>, tensor<8x12x1024xf32>) -> tensor<8x12x1024x64xf16>
  return %0 : tensor<8x12x1024x64xf16>
}

// -----

// CHECK-LABEL: func.func @gradient_f32(
// CHECK-NOT: xt.attention
// CHECK-COUNT-3: "xt.dot_general"
func.func @gradient_f32(%x: tensor<8x12x1024x64xf32>, %s: tensor<8x12x1024xf32>) -> tensor<8x12x1024x64xf32> {
  %0 = "xt.attention_query_gradient"(%x, %x, %x, %x, %s, %s) {causal = false, scale = 1.0 : f64} : (tensor<8x12x1024x64xf32>, tensor<8x12x1024x64xf32>, tensor<8x12x1024x64xf32>, tensor<8x12x1024x64xf32>, tensor<8x12x1024xf32>, tensor<8x12x1024xf32>) -> tensor<8x12x1024x64xf32>
  return %0 : tensor<8x12x1024x64xf32>
}

// -----

// CHECK-LABEL: func.func @gradient_wide(
// CHECK-NOT: xt.attention
func.func @gradient_wide(%x: tensor<8x12x1024x160xf16>, %s: tensor<8x12x1024xf32>) -> tensor<8x12x1024x160xf16> {
  %0 = "xt.attention_query_gradient"(%x, %x, %x, %x, %s, %s) {causal = false, scale = 1.0 : f64} : (tensor<8x12x1024x160xf16>, tensor<8x12x1024x160xf16>, tensor<8x12x1024x160xf16>, tensor<8x12x1024x160xf16>, tensor<8x12x1024xf32>, tensor<8x12x1024xf32>) -> tensor<8x12x1024x160xf16>
  return %0 : tensor<8x12x1024x160xf16>
}

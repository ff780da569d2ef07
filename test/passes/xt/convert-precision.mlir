// RUN: %xcc_opt %s --pass-pipeline=convert-precision{type=f16} --split-input-file | filecheck %s

// The product is narrow, the softmax between is wide, and the model's own types stay.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[XN:.*]] = "xt.convert"(%[[X]]) {{.*}} -> tensor<4x8xf16>
// CHECK-DAG: %[[WN:.*]] = "xt.convert"(%[[W]]) {{.*}} -> tensor<8x8xf16>
// CHECK: %[[Y:.*]] = "xt.dot_general"(%[[XN]], %[[WN]]) {{.*}} -> tensor<4x8xf16>
// CHECK: %[[YW:.*]] = "xt.convert"(%[[Y]]) {{.*}} -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = "xt.softmax"(%[[YW]]) {{.*}} -> tensor<4x8xf32>
// CHECK: return %[[S]]
func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = "xt.softmax"(%y) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

// x*x feeds a sum alone: squares of f16 values would overflow, so it is wide; the last product is narrow.
// CHECK-LABEL: func.func @rms(
// CHECK: "xt.mul"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: "xt.reduce"{{.*}} -> tensor<4x1xf32>
// CHECK: %[[R:.*]] = "xt.rsqrt"({{.*}} -> tensor<4x1xf32>
// CHECK: "xt.mul"({{.*}} -> tensor<4x8xf16>
func.func @rms(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = "xt.neg"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %q = "xt.mul"(%n, %n) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = "xt.reduce"(%q) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %r = "xt.rsqrt"(%s) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = "xt.mul"(%n, %r) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Constants past the narrow range become its largest finite value; integers are left alone.
// CHECK-LABEL: func.func @mask(
// CHECK: "xt.constant"() {value = dense<-6.550400e+04> : tensor<f16>}
// CHECK: "xt.add"(%{{.*}}, %{{.*}}) : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
// CHECK: "xt.add"(%{{.*}}, %{{.*}}) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
func.func @mask(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  %c = "xt.constant"() {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %y = "xt.add"(%x, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %j = "xt.add"(%i, %i) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return %y, %j : tensor<4xf32>, tensor<4xi64>
}

// -----

// Attention adds its mask to scores of f32: the least number of f32 stays, and what makes the mask is wide.
// CHECK-LABEL: func.func @attention_mask(
// CHECK: "xt.constant"() {value = dense<-3.40282347E+38> : tensor<f32>}
// CHECK: %[[M:.*]] = "xt.select"({{.*}} -> tensor<1x1x4x4xf32>
// CHECK: "xt.attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[M]]) {{.*}} : (tensor<1x1x4x8xf16>, tensor<1x1x4x8xf16>, tensor<1x1x4x8xf16>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x8xf16>
func.func @attention_mask(%q: tensor<1x1x4x8xf32>, %keep: tensor<1x1x4x4xi1>) -> tensor<1x1x4x8xf32> {
  %low = "xt.constant"() {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %zero = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %m = "xt.select"(%keep, %zero, %low) : (tensor<1x1x4x4xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %y = "xt.attention"(%q, %q, %q, %m) {scale = 1.0 : f64, causal = false, causal_offset = [0], softcap = 0.0 : f64, nan_rows = false} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----

// A mask that a product makes is narrow already, and stays so.
// CHECK-LABEL: func.func @attention_bias(
// CHECK: %[[B:.*]] = "xt.dot_general"({{.*}} -> tensor<1x1x4x4xf16>
// CHECK: "xt.attention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[B]])
func.func @attention_bias(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %b = "xt.dot_general"(%q, %q) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [3]} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32>
  %y = "xt.attention"(%q, %q, %q, %b) {scale = 1.0 : f64, causal = false, causal_offset = [0], softcap = 0.0 : f64, nan_rows = false} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----

// A cache that is updated in place stays as it is, through views, too; what reads it converts.
// CHECK-LABEL: func.func @cache(
// CHECK-SAME: %[[C:.*]]: tensor<8x4xf32>
// CHECK: %[[F:.*]] = "xt.reshape"(%[[C]]) {{.*}} -> tensor<32xf32>
// CHECK: %[[N:.*]] = "xt.dynamic_update_slice"(%[[F]], {{.*}} -> tensor<32xf32>
// CHECK: %[[R:.*]] = "xt.reshape"(%[[N]]) {{.*}} -> tensor<8x4xf32>
// CHECK: %[[H:.*]] = "xt.convert"(%[[R]]) {{.*}} -> tensor<8x4xf16>
// CHECK: "xt.dot_general"(%{{.*}}, %[[H]])
// CHECK: return %{{.*}}, %[[R]]
func.func @cache(%c: tensor<8x4xf32> {xt.name = "past"}, %u: tensor<4xf32> {xt.name = "u"}, %i: tensor<i64> {xt.name = "i"},
                 %x: tensor<2x8xf32> {xt.name = "x"})
    -> (tensor<2x4xf32> {xt.name = "y"}, tensor<8x4xf32> {xt.name = "present", xt.updates = "past"}) {
  %f = "xt.reshape"(%c) {shape = [32]} : (tensor<8x4xf32>) -> tensor<32xf32>
  %n = "xt.dynamic_update_slice"(%f, %u, %i) : (tensor<32xf32>, tensor<4xf32>, tensor<i64>) -> tensor<32xf32>
  %r = "xt.reshape"(%n) {shape = [8, 4]} : (tensor<32xf32>) -> tensor<8x4xf32>
  %y = "xt.dot_general"(%x, %r) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %y, %r : tensor<2x4xf32>, tensor<8x4xf32>
}

// RUN: %xcc_opt %s --pass-pipeline=split-concatenations | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="split-concatenations{bytes=100000000}" | filecheck %s --check-prefix=SMALL

// SMALL-NOT: tensor<1x8x1x2048xf32>
// Scores of one query: those of past keys beside those of the new one.
// CHECK-LABEL: @scores
// CHECK: %[[A:.*]] = "xt.dot_general"(%arg0, %arg1){{.*}} -> tensor<1x8x1x2048xf32>
// CHECK: %[[B:.*]] = "xt.dot_general"(%arg0, %arg2){{.*}} -> tensor<1x8x1x1xf32>
// CHECK: "xtv.concatenate"(%[[A]], %[[B]]) {axis = 3 : i64}
func.func @scores(%q: tensor<1x8x1x64xf32>, %past: tensor<1x8x2048x64xf32>, %new: tensor<1x8x1x64xf32>) -> tensor<1x8x1x2049xf32> {
  %k = "xtv.concatenate"(%past, %new) {axis = 2 : i64} : (tensor<1x8x2048x64xf32>, tensor<1x8x1x64xf32>) -> tensor<1x8x2049x64xf32>
  %y = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3]} : (tensor<1x8x1x64xf32>, tensor<1x8x2049x64xf32>) -> tensor<1x8x1x2049xf32>
  return %y : tensor<1x8x1x2049xf32>
}

// Weighted values: a sum of products, rounded once.
// CHECK-LABEL: @values
// CHECK: %[[V:.*]] = "xt.slice"(%arg0) {limits = [1, 8, 1, 2048], starts = [0, 0, 0, 0]
// CHECK: %[[A:.*]] = "xt.dot_general"(%[[V]], %arg1) {dtype = f32
// CHECK: %[[W:.*]] = "xt.slice"(%arg0) {limits = [1, 8, 1, 2051], starts = [0, 0, 0, 2048]
// CHECK: %[[B:.*]] = "xt.dot_general"(%[[W]], %arg2) {dtype = f32
// CHECK: %[[S:.*]] = "xt.add"(%[[A]], %[[B]])
// CHECK: "xt.convert"(%[[S]]) {dtype = f16
func.func @values(%w: tensor<1x8x1x2051xf16>, %past: tensor<1x8x2048x64xf16>, %new: tensor<1x8x3x64xf16>) -> tensor<1x8x1x64xf16> {
  %v = "xtv.concatenate"(%past, %new) {axis = 2 : i64} : (tensor<1x8x2048x64xf16>, tensor<1x8x3x64xf16>) -> tensor<1x8x2051x64xf16>
  %y = "xt.dot_general"(%w, %v) {dtype = f16, lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2]} : (tensor<1x8x1x2051xf16>, tensor<1x8x2051x64xf16>) -> tensor<1x8x1x64xf16>
  return %y : tensor<1x8x1x64xf16>
}

// The parts of the left operand, of sizes that only a run knows.
// CHECK-LABEL: @left
// CHECK: %[[A:.*]] = "xt.dot_general"(%arg0, %arg2){{.*}} -> tensor<?x4xf32, ["n", 4]>
// CHECK: %[[B:.*]] = "xt.dot_general"(%arg1, %arg2){{.*}} -> tensor<7x4xf32>
// CHECK: "xtv.concatenate"(%[[A]], %[[B]]) {axis = 0 : i64}
func.func @left(%past: tensor<?x4096xf32, ["n", 4096]>, %new: tensor<7x4096xf32>, %q: tensor<4096x4xf32>) -> tensor<?x4xf32, ["n + 7", 4]> {
  %k = "xtv.concatenate"(%past, %new) {axis = 0 : i64} : (tensor<?x4096xf32, ["n", 4096]>, tensor<7x4096xf32>) -> tensor<?x4096xf32, ["n + 7", 4096]>
  %y = "xt.dot_general"(%k, %q) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x4096xf32, ["n + 7", 4096]>, tensor<4096x4xf32>) -> tensor<?x4xf32, ["n + 7", 4]>
  return %y : tensor<?x4xf32, ["n + 7", 4]>
}

// Not where something else reads it, where many rows do, or where what is put together is a batch.
// CHECK-LABEL: @others
// CHECK-COUNT-3: xtv.concatenate
// CHECK: return
func.func @others(%q: tensor<8x64xf32>, %m: tensor<8x17x64xf32>, %past: tensor<8x4096x64xf32>, %new: tensor<8x1x64xf32>) -> (tensor<8x4097xf32>, tensor<8x4097x64xf32>, tensor<8x17x4097xf32>, tensor<16x4096xf32>) {
  %k = "xtv.concatenate"(%past, %new) {axis = 1 : i64} : (tensor<8x4096x64xf32>, tensor<8x1x64xf32>) -> tensor<8x4097x64xf32>
  %y = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [2]} : (tensor<8x64xf32>, tensor<8x4097x64xf32>) -> tensor<8x4097xf32>
  %l = "xtv.concatenate"(%new, %past) {axis = 1 : i64} : (tensor<8x1x64xf32>, tensor<8x4096x64xf32>) -> tensor<8x4097x64xf32>
  %z = "xt.dot_general"(%m, %l) {dtype = f32, lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} : (tensor<8x17x64xf32>, tensor<8x4097x64xf32>) -> tensor<8x17x4097xf32>
  %b = "xtv.concatenate"(%past, %past) {axis = 0 : i64} : (tensor<8x4096x64xf32>, tensor<8x4096x64xf32>) -> tensor<16x4096x64xf32>
  %c = "xt.constant"() {value = dense<1.0> : tensor<16x64xf32>} : () -> tensor<16x64xf32>
  %u = "xt.dot_general"(%c, %b) {dtype = f32, lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [2]} : (tensor<16x64xf32>, tensor<16x4096x64xf32>) -> tensor<16x4096xf32>
  return %y, %k, %z, %u : tensor<8x4097xf32>, tensor<8x4097x64xf32>, tensor<8x17x4097xf32>, tensor<16x4096xf32>
}

// Nor what a loop's products read: it is put together once, before the loop.
// CHECK-LABEL: @steps
// CHECK: xtv.concatenate
// CHECK: xtv.scan
// CHECK-COUNT-1: xt.dot_general
func.func @steps(%h: tensor<4x4096xf32>, %a: tensor<2048x4096xf32>) -> tensor<4x4096xf32> {
  %w = "xtv.concatenate"(%a, %a) {axis = 0 : i64} : (tensor<2048x4096xf32>, tensor<2048x4096xf32>) -> tensor<4096x4096xf32>
  %y = "xtv.scan"(%h) ({
  ^bb0(%x: tensor<4x4096xf32>):
    %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : (tensor<4x4096xf32>, tensor<4096x4096xf32>) -> tensor<4x4096xf32>
    "xtv.yield"(%0) : (tensor<4x4096xf32>) -> ()
  }) {axes = [], length = [9], operandSegmentSizes = array<i32: 1, 0>, out_axes = [], out_reverse = [], reverse = []} : (tensor<4x4096xf32>) -> tensor<4x4096xf32>
  return %y : tensor<4x4096xf32>
}

// RUN: %xcc_opt %s --pass-pipeline=merge-products | filecheck %s

// Queries and keys of different numbers of heads: one product, whole heads of it are sliced.
// CHECK-LABEL: @heads
// CHECK: %[[W:.*]] = "xtv.concatenate"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<32x64xf16>, tensor<32x32xf16>) -> tensor<32x96xf16>
// CHECK: %[[P:.*]] = "xt.dot_general"(%{{.*}}, %[[W]]) {{.*}} -> tensor<8x96xf16>
// CHECK: %[[B:.*]] = "xtv.concatenate"
// CHECK: %[[Y:.*]] = "xt.add"(%[[P]], %[[B]])
// CHECK-NOT: xt.dot_general
// CHECK: %[[R:.*]] = "xt.reshape"(%[[Y]]) {shape = [8, 6, 16]}
// CHECK: %[[Q:.*]] = "xt.slice"(%[[R]]) {limits = [8, 4, 16], starts = [0, 0, 0]
// CHECK: "xt.slice"(%{{.*}}) {limits = [8, 6, 16], starts = [0, 4, 0]
func.func @heads(%x: tensor<8x32xf16>) -> (tensor<8x4x16xf16>, tensor<8x2x16xf16>) {
  %wq = "xt.weight"() {name = "wq"} : () -> tensor<32x64xf16>
  %wk = "xt.weight"() {name = "wk"} : () -> tensor<32x32xf16>
  %b = "xt.weight"() {name = "b"} : () -> tensor<64xf16>
  %0 = "xt.dot_general"(%x, %wq) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x64xf16>) -> tensor<8x64xf16>
  %1 = "xt.add"(%0, %b) : (tensor<8x64xf16>, tensor<64xf16>) -> tensor<8x64xf16>
  %q = "xt.reshape"(%1) {shape = [8, 4, 16]} : (tensor<8x64xf16>) -> tensor<8x4x16xf16>
  %2 = "xt.dot_general"(%x, %wk) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x32xf16>) -> tensor<8x32xf16>
  %k = "xt.reshape"(%2) {shape = [8, 2, 16]} : (tensor<8x32xf16>) -> tensor<8x2x16xf16>
  return %q, %k : tensor<8x4x16xf16>, tensor<8x2x16xf16>
}

// A reader that needs all columns in one piece, or a matrix that is not stored: apart.
// CHECK-LABEL: @apart
// CHECK-NOT: xtv.concatenate
func.func @apart(%x: tensor<8x32xf16>, %w: tensor<32x32xf16>) -> (tensor<8x32xf16>, tensor<8x2x16xf16>) {
  %wq = "xt.weight"() {name = "wq"} : () -> tensor<32x32xf16>
  %wk = "xt.weight"() {name = "wk"} : () -> tensor<32x32xf16>
  %0 = "xt.dot_general"(%x, %wq) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x32xf16>) -> tensor<8x32xf16>
  %q = "xt.tanh"(%0) : (tensor<8x32xf16>) -> tensor<8x32xf16>
  %2 = "xt.dot_general"(%x, %wk) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x32xf16>) -> tensor<8x32xf16>
  %3 = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x32xf16>) -> tensor<8x32xf16>
  %4 = "xt.reshape"(%2) {shape = [8, 2, 16]} : (tensor<8x32xf16>) -> tensor<8x2x16xf16>
  %5 = "xt.reshape"(%3) {shape = [8, 2, 16]} : (tensor<8x32xf16>) -> tensor<8x2x16xf16>
  %k = "xt.add"(%4, %5) : (tensor<8x2x16xf16>, tensor<8x2x16xf16>) -> tensor<8x2x16xf16>
  return %q, %k : tensor<8x32xf16>, tensor<8x2x16xf16>
}

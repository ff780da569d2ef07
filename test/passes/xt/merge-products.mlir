// RUN: %xcc_opt %s --pass-pipeline=merge-products --target=nvptx --chip=sm_90a | filecheck %s

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

// Pointwise readers: 2 + 2 waves of tiles on 132 cores are 3 when joined, which pays for the further pass.
// CHECK-LABEL: @gate
// CHECK: %[[Y:.*]] = "xt.dot_general"{{.*}} -> tensor<512x22016xf16>
// CHECK-NOT: xt.dot_general
// CHECK-DAG: %[[G:.*]] = "xt.slice"(%[[Y]]) {limits = [512, 11008], starts = [0, 0]
// CHECK-DAG: %[[U:.*]] = "xt.slice"(%[[Y]]) {limits = [512, 22016], starts = [0, 11008]
func.func @gate(%x: tensor<512x4096xf16>) -> tensor<512x11008xf16> {
  %wg = "xt.weight"() {name = "wg"} : () -> tensor<4096x11008xf16>
  %wu = "xt.weight"() {name = "wu"} : () -> tensor<4096x11008xf16>
  %0 = "xt.dot_general"(%x, %wg) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<512x4096xf16>, tensor<4096x11008xf16>) -> tensor<512x11008xf16>
  %1 = "xt.sigmoid"(%0) : (tensor<512x11008xf16>) -> tensor<512x11008xf16>
  %2 = "xt.mul"(%0, %1) : (tensor<512x11008xf16>, tensor<512x11008xf16>) -> tensor<512x11008xf16>
  %3 = "xt.dot_general"(%x, %wu) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<512x4096xf16>, tensor<4096x11008xf16>) -> tensor<512x11008xf16>
  %4 = "xt.mul"(%2, %3) : (tensor<512x11008xf16>, tensor<512x11008xf16>) -> tensor<512x11008xf16>
  return %4 : tensor<512x11008xf16>
}

// 2 + 2 waves of narrow tiles are 3.
// CHECK-LABEL: @half_gate
// CHECK: "xt.dot_general"{{.*}} -> tensor<512x11008xf16>
func.func @half_gate(%x: tensor<512x4096xf16>) -> tensor<512x5504xf16> {
  %wg = "xt.weight"() {name = "wg"} : () -> tensor<4096x5504xf16>
  %wu = "xt.weight"() {name = "wu"} : () -> tensor<4096x5504xf16>
  %0 = "xt.dot_general"(%x, %wg) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<512x4096xf16>, tensor<4096x5504xf16>) -> tensor<512x5504xf16>
  %1 = "xt.sigmoid"(%0) : (tensor<512x5504xf16>) -> tensor<512x5504xf16>
  %3 = "xt.dot_general"(%x, %wu) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<512x4096xf16>, tensor<4096x5504xf16>) -> tensor<512x5504xf16>
  %4 = "xt.mul"(%1, %3) : (tensor<512x5504xf16>, tensor<512x5504xf16>) -> tensor<512x5504xf16>
  return %4 : tensor<512x5504xf16>
}

// Enough rows for many waves: the products keep their epilogues.
// CHECK-LABEL: @many_rows
// CHECK-NOT: xtv.concatenate
func.func @many_rows(%x: tensor<16384x4096xf16>) -> tensor<16384x11008xf16> {
  %wg = "xt.weight"() {name = "wg"} : () -> tensor<4096x11008xf16>
  %wu = "xt.weight"() {name = "wu"} : () -> tensor<4096x11008xf16>
  %0 = "xt.dot_general"(%x, %wg) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16384x4096xf16>, tensor<4096x11008xf16>) -> tensor<16384x11008xf16>
  %1 = "xt.sigmoid"(%0) : (tensor<16384x11008xf16>) -> tensor<16384x11008xf16>
  %3 = "xt.dot_general"(%x, %wu) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16384x4096xf16>, tensor<4096x11008xf16>) -> tensor<16384x11008xf16>
  %4 = "xt.mul"(%1, %3) : (tensor<16384x11008xf16>, tensor<16384x11008xf16>) -> tensor<16384x11008xf16>
  return %4 : tensor<16384x11008xf16>
}

// Biases that are added before the sum is rounded: one rounding of one sum.
// CHECK-LABEL: @rounded
// CHECK: %[[P:.*]] = "xt.dot_general"{{.*}} -> tensor<8x96xf32>
// CHECK: %[[S:.*]] = "xt.add"(%[[P]], %{{.*}}) : (tensor<8x96xf32>, tensor<96xf32>)
// CHECK: %[[C:.*]] = "xt.convert"(%[[S]]) {{.*}} -> tensor<8x96xf16>
// CHECK: "xt.reshape"(%[[C]]) {shape = [8, 6, 16]}
func.func @rounded(%x: tensor<8x32xf16>) -> (tensor<8x4x16xf16>, tensor<8x2x16xf16>) {
  %wq = "xt.weight"() {name = "wq"} : () -> tensor<32x64xf16>
  %wk = "xt.weight"() {name = "wk"} : () -> tensor<32x32xf16>
  %bq = "xt.weight"() {name = "bq"} : () -> tensor<64xf32>
  %bk = "xt.weight"() {name = "bk"} : () -> tensor<32xf32>
  %0 = "xt.dot_general"(%x, %wq) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x64xf16>) -> tensor<8x64xf32>
  %1 = "xt.add"(%0, %bq) : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %2 = "xt.convert"(%1) {dtype = f16, saturate = false} : (tensor<8x64xf32>) -> tensor<8x64xf16>
  %q = "xt.reshape"(%2) {shape = [8, 4, 16]} : (tensor<8x64xf16>) -> tensor<8x4x16xf16>
  %3 = "xt.dot_general"(%x, %wk) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x32xf16>, tensor<32x32xf16>) -> tensor<8x32xf32>
  %4 = "xt.add"(%3, %bk) : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %5 = "xt.convert"(%4) {dtype = f16, saturate = false} : (tensor<8x32xf32>) -> tensor<8x32xf16>
  %k = "xt.reshape"(%5) {shape = [8, 2, 16]} : (tensor<8x32xf16>) -> tensor<8x2x16xf16>
  return %q, %k : tensor<8x4x16xf16>, tensor<8x2x16xf16>
}

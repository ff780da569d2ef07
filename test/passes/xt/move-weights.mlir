// RUN: %xcc_opt %s --pass-pipeline="xt-decompose, move-weights, pack-weights{width=32}, pack-bits" --split-input-file --verify-each | filecheck %s

// A transpose of what is decoded from weights is one of the weights; panels are made of the bytes that are stored.
// CHECK-LABEL: @block
// CHECK-NOT: xt.transpose{{.*}}xf32>) -> tensor<64x96xf32>
// CHECK-DAG: "xt.weight"() {name = "w.bytes"} : () -> tensor<48x64xui8>
// CHECK-DAG: "xt.unpack"({{.*}} {axis = 0 : i64, dtype = i4, size = [96]} : (tensor<48x64xui8>) -> tensor<96x64xi4>
// CHECK-DAG: "xt.stretch"({{.*}} {axis = 1 : i64, size = [64], times = 32 : i64} : (tensor<3x2x32xf32>) -> tensor<3x64x32xf32>
// CHECK: "xt.packed_matmul"({{.*}} {batch = 0 : i64, columns = [96]
func.func @block(%x: tensor<5x64xf32>) -> tensor<5x96xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<96x64xi4>
  %s = "xt.weight"() {name = "s"} : () -> tensor<96x2xf32>
  %d = "xt.dequantize"(%w, %s) {axis = 1 : i64, block = 32 : i64, dtype = f32, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<96x64xi4>, tensor<96x2xf32>) -> tensor<96x64xf32>
  %t = "xt.transpose"(%d) {perm = [1, 0]} : (tensor<96x64xf32>) -> tensor<64x96xf32>
  %y = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<5x64xf32>, tensor<64x96xf32>) -> tensor<5x96xf32>
  return %y : tensor<5x96xf32>
}

// -----
// Blocks written by hand: the scales of a merged dim are stretched.
// CHECK-LABEL: @merged
// CHECK: "xt.stretch"({{.*}} {axis = 1 : i64, size = [64], times = 16 : i64} : (tensor<3x4xf32>) -> tensor<3x64xf32>
// CHECK: %[[Y:.*]] = "xt.mul"
// CHECK: return %[[Y]] : tensor<3x64xf32>
func.func @merged() -> tensor<3x64xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x4x16xi8>
  %s = "xt.weight"() {name = "s"} : () -> tensor<3x4x1xf32>
  %f = "xt.convert"(%w) {dtype = f32, saturate = false} : (tensor<3x4x16xi8>) -> tensor<3x4x16xf32>
  %d = "xt.mul"(%f, %s) : (tensor<3x4x16xf32>, tensor<3x4x1xf32>) -> tensor<3x4x16xf32>
  %t = "xt.reshape"(%d) {shape = [3, 64]} : (tensor<3x4x16xf32>) -> tensor<3x64xf32>
  return %t : tensor<3x64xf32>
}

// -----
// What depends on an input stays where it is.
// CHECK-LABEL: @computed
// CHECK: %[[D:.*]] = "xt.mul"
// CHECK: "xt.transpose"(%[[D]])
func.func @computed(%s: tensor<64xf32>) -> tensor<64x3xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x64xi8>
  %f = "xt.convert"(%w) {dtype = f32, saturate = false} : (tensor<3x64xi8>) -> tensor<3x64xf32>
  %d = "xt.mul"(%f, %s) : (tensor<3x64xf32>, tensor<64xf32>) -> tensor<3x64xf32>
  %t = "xt.transpose"(%d) {perm = [1, 0]} : (tensor<3x64xf32>) -> tensor<64x3xf32>
  return %t : tensor<64x3xf32>
}

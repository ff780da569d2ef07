// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="integer-contractions, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="integer-contractions, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s

// Two activations are multiplied in bytes where enough rows pay for bringing the right one into groups.
// CHECK-LABEL: func.func @activations(
// CHECK: "xt.dot_general"{{.*}} : (tensor<2x16x8xui8>, tensor<2x8x5xi8>) -> tensor<2x16x5xi32>
func.func @activations(%x: tensor<2x16x8xui8>, %y: tensor<2x8x5xi8>) -> tensor<2x16x5xf32> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.dequantize"(%x, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x16x8xui8>, tensor<f32>) -> tensor<2x16x8xf32>
  %b = "xt.dequantize"(%y, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x8x5xi8>, tensor<f32>) -> tensor<2x8x5xf32>
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<2x16x8xf32>, tensor<2x8x5xf32>) -> tensor<2x16x5xf32>
  return %0 : tensor<2x16x5xf32>
}

// Few rows do not.
// CHECK-LABEL: func.func @few_rows(
// CHECK: "xt.dot_general"{{.*}} -> tensor<2x4x5xf32>
func.func @few_rows(%x: tensor<2x4x8xui8>, %y: tensor<2x8x5xi8>) -> tensor<2x4x5xf32> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.dequantize"(%x, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x4x8xui8>, tensor<f32>) -> tensor<2x4x8xf32>
  %b = "xt.dequantize"(%y, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x8x5xi8>, tensor<f32>) -> tensor<2x8x5xf32>
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<2x4x8xf32>, tensor<2x8x5xf32>) -> tensor<2x4x5xf32>
  return %0 : tensor<2x4x5xf32>
}

// Sums are filled up to whole groups with zeros.
// CHECK-LABEL: func.func @odd_sums(
// CHECK: %[[A:.*]] = "xt.pad"(%arg0) {high = [0, 1], {{.*}} -> tensor<16x8xui8>
// CHECK: %[[B:.*]] = "xt.pad"(%arg1) {high = [1, 0], {{.*}} -> tensor<8x5xi8>
// CHECK: "xt.dot_general"(%[[A]], %[[B]]){{.*}} -> tensor<16x5xi32>
func.func @odd_sums(%x: tensor<16x7xui8>, %y: tensor<7x5xi8>) -> tensor<16x5xf32> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.dequantize"(%x, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<16x7xui8>, tensor<f32>) -> tensor<16x7xf32>
  %b = "xt.dequantize"(%y, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<7x5xi8>, tensor<f32>) -> tensor<7x5xf32>
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<16x7xf32>, tensor<7x5xf32>) -> tensor<16x5xf32>
  return %0 : tensor<16x5xf32>
}

// As long as a size says: zero points on both sides take as many.
// CHECK-LABEL: func.func @unknown_sums(
// CHECK-DAG: "xt.dot_general"(%arg0, %{{.*}}) {dtype = i32{{.*}} : (tensor<?x?xui8, ["m", "k"]>, tensor<?x?xi8, ["k", "n"]>) -> tensor<?x?xi32, ["m", "n"]>
// CHECK-DAG: "xt.dim"() {value = ["k"]}
func.func @unknown_sums(%x: tensor<?x?xui8, ["m", "k"]>, %y: tensor<?x?xui8, ["k", "n"]>, %z: tensor<ui8>) -> tensor<?x?xi32, ["m", "n"]> {
  %a = "xt.convert"(%x) {dtype = i32, saturate = true} : (tensor<?x?xui8, ["m", "k"]>) -> tensor<?x?xi32, ["m", "k"]>
  %b = "xt.convert"(%y) {dtype = i32, saturate = true} : (tensor<?x?xui8, ["k", "n"]>) -> tensor<?x?xi32, ["k", "n"]>
  %c = "xt.convert"(%z) {dtype = i32, saturate = true} : (tensor<ui8>) -> tensor<i32>
  %d = "xt.sub"(%a, %c) : (tensor<?x?xi32, ["m", "k"]>, tensor<i32>) -> tensor<?x?xi32, ["m", "k"]>
  %0 = "xt.dot_general"(%d, %b) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<?x?xi32, ["m", "k"]>, tensor<?x?xi32, ["k", "n"]>) -> tensor<?x?xi32, ["m", "n"]>
  return %0 : tensor<?x?xi32, ["m", "n"]>
}

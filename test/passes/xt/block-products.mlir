// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="block-products, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=apple-m1 --pass-pipeline="block-products, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s --check-prefix=SIGNED
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="block-products" --verify-each | filecheck %s --check-prefix=FLOAT

// Blocks of rows are rounded to bytes, and multiplied a batch each: the sum of zero points is one of the bytes.
// CHECK-LABEL: func.func @blocks(
// CHECK: %[[M:.*]] = "xt.reduce"({{.*}}kind = "max"{{.*}} -> tensor<5x2x1xf32>
// CHECK: %[[Q:.*]] = "xt.convert"({{.*}} -> tensor<5x2x16xi8>
// CHECK: %[[L:.*]] = "xt.transpose"(%[[Q]]) {perm = [1, 0, 2]}
// CHECK: %[[P:.*]] = "xt.dot_general"(%[[L]], %{{.*}}) {dtype = i32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : (tensor<2x5x16xi8>, tensor<2x8x16xui8>) -> tensor<2x5x8xi32>
// CHECK: %[[S:.*]] = "xt.reduce"({{.*}}kind = "sum"{{.*}} : (tensor<2x5x16xi32>) -> tensor<2x5x1xi32>
// CHECK: %[[Z:.*]] = "xt.mul"(%[[S]], %{{.*}})
// CHECK: "xt.sub"(%[[P]], %[[Z]])
// CHECK: "xt.reduce"({{.*}}axes = [0]{{.*}} -> tensor<5x8xf32>
// SIGNED-LABEL: func.func @blocks(
// SIGNED: "xt.dot_general"({{.*}} : (tensor<2x5x16xi8>, tensor<2x8x16xi8>) -> tensor<2x5x8xi32>
// FLOAT-LABEL: func.func @blocks(
// FLOAT: "xt.dot_general"(%arg0, {{.*}} -> tensor<5x8xf32>
func.func @blocks(%x: tensor<5x32xf32>) -> tensor<5x8xf32> {
  %q = "xt.weight"() {name = "q"} : () -> tensor<8x32xui4>
  %s = "xt.weight"() {name = "s"} : () -> tensor<8x2xf32>
  %z = "xt.constant"() {value = dense<8> : tensor<8x2xui4>} : () -> tensor<8x2xui4>
  %w = "xt.dequantize"(%q, %s, %z) {axis = 1 : i64, block = 16 : i64, dtype = f32} : (tensor<8x32xui4>, tensor<8x2xf32>, tensor<8x2xui4>) -> tensor<8x32xf32>
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1], precision = "i8"} : (tensor<5x32xf32>, tensor<8x32xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// Zero points of each block are multiplied in f32; the last block is filled up.
// CHECK-LABEL: func.func @points(
// CHECK: "xt.dot_general"({{.*}} : (tensor<2x?x16xi8{{.*}}>, tensor<2x8x16xui8>) -> tensor<2x?x8xi32
// CHECK: "xt.sub"({{.*}} -> tensor<2x?x8xf32
func.func @points(%x: tensor<?x30xf32, ["n", 30]>) -> tensor<?x8xf32, ["n", 8]> {
  %q = "xt.weight"() {name = "r"} : () -> tensor<8x30xui8>
  %s = "xt.weight"() {name = "s"} : () -> tensor<8x2xf32>
  %z = "xt.weight"() {name = "z"} : () -> tensor<8x2xui8>
  %w = "xt.dequantize"(%q, %s, %z) {axis = 1 : i64, block = 16 : i64, dtype = f32} : (tensor<8x30xui8>, tensor<8x2xf32>, tensor<8x2xui8>) -> tensor<8x30xf32>
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1], precision = "i8"} : (tensor<?x30xf32, ["n", 30]>, tensor<8x30xf32>) -> tensor<?x8xf32, ["n", 8]>
  return %y : tensor<?x8xf32, ["n", 8]>
}

// What may not be rounded is not.
// CHECK-LABEL: func.func @exact(
// CHECK: "xt.dot_general"(%arg0, {{.*}} -> tensor<5x8xf32>
func.func @exact(%x: tensor<5x32xf32>) -> tensor<5x8xf32> {
  %q = "xt.weight"() {name = "q"} : () -> tensor<8x32xui4>
  %s = "xt.weight"() {name = "s"} : () -> tensor<8x2xf32>
  %w = "xt.dequantize"(%q, %s) {axis = 1 : i64, block = 16 : i64, dtype = f32} : (tensor<8x32xui4>, tensor<8x2xf32>) -> tensor<8x32xf32>
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<5x32xf32>, tensor<8x32xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="operands-along-k, xt-fold" --verify-each | filecheck %s

// CHECK-LABEL: func.func @products(
// CHECK: %[[W:.*]] = "xt.constant"() {value = dense<{{.*}}1, 3], [2, 4{{.*}}> : tensor<2x2xi8>}
// CHECK: "xt.dot_general"(%{{.*}}, %[[W]]) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]}
func.func @products(%x: tensor<3x2xui8>) -> tensor<3x2xi32> {
  %w = "xt.constant"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %y = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  return %y : tensor<3x2xi32>
}

// CHECK-LABEL: func.func @convolutions(
// CHECK: %[[W:.*]] = "xt.constant"() {value = dense<{{.*}}1, 3{{.*}}5, 7{{.*}}2, 4{{.*}}6, 8{{.*}}> : tensor<2x1x2x2xi8>}
// CHECK: "xt.convolution"(%{{.*}}, %[[W]]) {dtype = i32, filter = "OHWI"
func.func @convolutions(%x: tensor<1x4x4x2xi8>) -> tensor<1x4x3x2xi32> {
  %w = "xt.constant"() {value = dense<[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]> : tensor<1x2x2x2xi8>} : () -> tensor<1x2x2x2xi8>
  %y = "xt.convolution"(%x, %w) {dtype = i32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x4x4x2xi8>, tensor<1x2x2x2xi8>) -> tensor<1x4x3x2xi32>
  return %y : tensor<1x4x3x2xi32>
}

// What a run computes stays, and so do weights of wider types.
// CHECK-LABEL: func.func @others(
// CHECK: "xt.dot_general"(%{{.*}}, %{{.*}}) {{.*}}rhs_contract = [0]
// CHECK: "xt.dot_general"(%{{.*}}, %{{.*}}) {{.*}}rhs_contract = [0]
func.func @others(%x: tensor<3x2xi8>, %w: tensor<2x2xi8>, %f: tensor<3x2xf16>) -> (tensor<3x2xi32>, tensor<3x2xf16>) {
  %v = "xt.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
  %y = "xt.dot_general"(%x, %w) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %z = "xt.dot_general"(%f, %v) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<3x2xf16>, tensor<2x2xf16>) -> tensor<3x2xf16>
  return %y, %z : tensor<3x2xi32>, tensor<3x2xf16>
}

// f32 that may be rounded to tf32 lies along k for wgmma, which saves more than the copies cost; filters do in any case.
// CHECK-LABEL: func.func @tf32(
// CHECK-SAME: %[[X:.*]]: tensor<4096x2048xf32>, %[[W:.*]]: tensor<4096x1024xf32>,
// CHECK-DAG: %[[A:.*]] = "xt.transpose"(%[[X]]) {perm = [1, 0]}
// CHECK-DAG: %[[B:.*]] = "xt.transpose"(%[[W]]) {perm = [1, 0]}
// CHECK: "xt.dot_general"(%[[A]], %[[B]]) {dtype = f32, lhs_batch = [], lhs_contract = [1], precision = "tf32", rhs_batch = [], rhs_contract = [1]}
// CHECK: "xt.convolution"({{.*}}filter = "OHWI"
func.func @tf32(%x: tensor<4096x2048xf32>, %w: tensor<4096x1024xf32>, %i: tensor<1x4x4x2xf32>, %f: tensor<1x2x2x2xf32>) -> (tensor<2048x1024xf32>, tensor<1x4x3x2xf32>) {
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [0], precision = "tf32", rhs_batch = [], rhs_contract = [0]} : (tensor<4096x2048xf32>, tensor<4096x1024xf32>) -> tensor<2048x1024xf32>
  %z = "xt.convolution"(%i, %f) {dtype = f32, filter = "HWIO", precision = "tf32", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x4x4x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x4x3x2xf32>
  return %y, %z : tensor<2048x1024xf32>, tensor<1x4x3x2xf32>
}

// Not where they cost more, and not of products that stay exact.
// CHECK-LABEL: func.func @small(
// CHECK-NOT: xt.transpose
// CHECK: return
func.func @small(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>) -> (tensor<128x128xf32>, tensor<4096x4096xf32>) {
  %y = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [0], precision = "tf32", rhs_batch = [], rhs_contract = [0]} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %z = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %y, %z : tensor<128x128xf32>, tensor<4096x4096xf32>
}

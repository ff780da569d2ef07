// RUN: %xcc_opt %s --pass-pipeline="integer-contractions{activations=ui8}, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="integer-contractions{activations=i8}, xt-fold, mlir(canonicalize, cse)" --verify-each | filecheck %s --check-prefix=SIGNED

// The bytes are multiplied, padded with their zero point; its product with the sums of the weights joins the bias.
// CHECK-LABEL: func.func @conv(
// CHECK-SAME: %[[X:.*]]: tensor<1x1x4x4xui8>
// CHECK-DAG: %[[W:.*]] = "xt.constant"() {value = dense<{{.*}}> : tensor<2x1x1x2xi8>}
// CHECK-DAG: %[[TERM:.*]] = "xt.constant"() {value = dense<{{\[\[\[}}-10{{.*}}-58{{.*}}> : tensor<2x1x1xi32>}
// CHECK-DAG: %[[P:.*]] = "xt.pad"(%[[X]]) {{.*}}value = 1.000000e+01
// CHECK-DAG: %[[T:.*]] = "xt.convolution"(%[[P]], %[[W]]) {dtype = i32
// CHECK: %[[S:.*]] = "xt.add"(%[[T]], %[[TERM]])
// CHECK: %[[F:.*]] = "xt.convert"(%[[S]]) {dtype = f32
// CHECK: %[[R:.*]] = "xt.mul"(%[[F]]
// CHECK: %[[Q:.*]] = "xt.requantize"(%[[R]]) {dtype = ui8, zero_point = 3 : i64}
// CHECK: return %[[Q]]
// SIGNED-LABEL: func.func @conv(
// SIGNED: "xt.convolution"({{.*}}(tensor<1x1x4x5xi8>, tensor<2x1x1x2xi8>) -> tensor<1x2x4x4xi32>
func.func @conv(%x: tensor<1x1x4x4xui8>) -> tensor<1x2x4x4xui8> {
  %sx = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zx = "xt.constant"() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %w = "xt.constant"() {value = dense<[[[[1, 2]]], [[[3, 4]]]]> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %sw = "xt.constant"() {value = dense<[0.25, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "xt.constant"() {value = dense<[20, 12]> : tensor<2xi32>} : () -> tensor<2xi32>
  %sb = "xt.constant"() {value = dense<[0.125, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %sy = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %zy = "xt.constant"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %xf = "xt.dequantize"(%x, %sx, %zx) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<1x1x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xf32>
  %wf = "xt.dequantize"(%w, %sw) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x1x1x2xi8>, tensor<2xf32>) -> tensor<2x1x1x2xf32>
  %bf = "xt.dequantize"(%b, %sb) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>
  %y = "xt.convolution"(%xf, %wf) {dtype = f32, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [0, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x1x4x4xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x4x4xf32>
  %bias = "xt.reshape"(%bf) {shape = [1, 2, 1, 1]} : (tensor<2xf32>) -> tensor<1x2x1x1xf32>
  %z = "xt.add"(%y, %bias) : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %q = "xt.quantize"(%z, %sy, %zy) {axis = 0 : i64, block = 0 : i64, dtype = ui8, reciprocal = false, saturate = true} : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xui8>
  return %q : tensor<1x2x4x4xui8>
}

// i32 products of bytes less their zero points, one known when it runs: exact, with the sums of the weights.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[X:.*]]: tensor<3x2xui8>, %[[Z:.*]]: tensor<ui8>
// CHECK: %[[T:.*]] = "xt.dot_general"(%[[X]], %{{.*}}) {dtype = i32{{.*}} : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
// CHECK: "xt.mul"(%{{.*}}, %{{.*}}) : (tensor<2xi32>, tensor<i32>)
// CHECK: return %{{.*}} : tensor<3x2xi32>
func.func @dynamic(%x: tensor<3x2xui8>, %z: tensor<ui8>) -> tensor<3x2xi32> {
  %w = "xt.constant"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %a = "xt.convert"(%x) {dtype = i32, saturate = false} : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %p = "xt.convert"(%z) {dtype = i32, saturate = false} : (tensor<ui8>) -> tensor<i32>
  %c = "xt.sub"(%a, %p) : (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>
  %b = "xt.convert"(%w) {dtype = i32, saturate = false} : (tensor<2x2xi8>) -> tensor<2x2xi32>
  %y = "xt.dot_general"(%c, %b) {dtype = i32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<3x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  return %y : tensor<3x2xi32>
}

// Bytes move as bytes; a maximum of windows does not need the numbers; equal scales undo each other.
// CHECK-LABEL: func.func @moves(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x4x4xui8>
// CHECK: %[[W:.*]] = "xt.reduce_window"(%[[X]])
// CHECK: %[[R:.*]] = "xt.reshape"(%[[W]])
// CHECK: return %[[R]] : tensor<1x8xui8>
func.func @moves(%x: tensor<1x2x4x4xui8>) -> tensor<1x8xui8> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.constant"() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "xt.dequantize"(%x, %s, %z) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xf32>
  %1 = "xt.reduce_window"(%0) {dilations = [1, 1, 1, 1], high = [0, 0, 0, 0], kind = "max", low = [0, 0, 0, 0], strides = [1, 1, 2, 2], window = [1, 1, 2, 2]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %2 = "xt.reshape"(%1) {shape = [1, 8]} : (tensor<1x2x2x2xf32>) -> tensor<1x8xf32>
  %3 = "xt.quantize"(%2, %s, %z) {axis = 0 : i64, block = 0 : i64, dtype = ui8, reciprocal = false, saturate = true} : (tensor<1x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x8xui8>
  return %3 : tensor<1x8xui8>
}

// As PyTorch has a linear layer: the weight's scales by channel turn with it, the input is multiplied by the reciprocal of a
// scale, the result's scale is of f64.
// CHECK-LABEL: func.func @linear(
// CHECK-DAG: %[[W:.*]] = "xt.constant"() {{.*}} tensor<2x3xi8>
// CHECK-DAG: %[[Q:.*]] = "xt.quantize"{{.*}} reciprocal = true
// CHECK: %[[T:.*]] = "xt.dot_general"(%[[Q]], %[[W]]) {dtype = i32
// CHECK: "xt.requantize"{{.*}} zero_point = 5
// SIGNED-LABEL: func.func @linear(
// SIGNED: "xt.quantize"{{.*}} dtype = i8, reciprocal = true
func.func @linear(%x: tensor<4x2xf32>) -> tensor<4x3xui8> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.constant"() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %w = "xt.constant"() {value = dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi8>} : () -> tensor<3x2xi8>
  %ws = "xt.constant"() {value = dense<[0.1, 0.2, 0.3]> : tensor<3xf32>} : () -> tensor<3xf32>
  %os = "xt.constant"() {value = dense<0.05> : tensor<f64>} : () -> tensor<f64>
  %oz = "xt.constant"() {value = dense<5> : tensor<ui8>} : () -> tensor<ui8>
  %q = "xt.quantize"(%x, %s, %z) {axis = 0 : i64, block = 0 : i64, dtype = ui8, reciprocal = true, saturate = true} : (tensor<4x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x2xui8>
  %0 = "xt.dequantize"(%q, %s, %z) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<4x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<4x2xf32>
  %1 = "xt.dequantize"(%w, %ws) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<3x2xi8>, tensor<3xf32>) -> tensor<3x2xf32>
  %2 = "xt.transpose"(%1) {perm = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %3 = "xt.dot_general"(%0, %2) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %4 = "xt.quantize"(%3, %os, %oz) {axis = 0 : i64, block = 0 : i64, dtype = ui8, reciprocal = true, saturate = true} : (tensor<4x3xf32>, tensor<f64>, tensor<ui8>) -> tensor<4x3xui8>
  return %4 : tensor<4x3xui8>
}

// A contraction of two activations stays in floats.
// CHECK-LABEL: func.func @activations(
// CHECK: "xt.dot_general"{{.*}}-> tensor<3x3xf32>
func.func @activations(%x: tensor<3x2xui8>, %y: tensor<2x3xi8>) -> tensor<3x3xf32> {
  %s = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.dequantize"(%x, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<3x2xui8>, tensor<f32>) -> tensor<3x2xf32>
  %b = "xt.dequantize"(%y, %s) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

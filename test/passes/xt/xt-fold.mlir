// RUN: %xcc_opt %s --pass-pipeline=xt-fold --split-input-file | filecheck %s

// CHECK-LABEL: @constants
// CHECK: %[[C:.*]] = "xt.constant"() {value = dense<[5.000000e+00, 7.000000e+00]>
// CHECK-NEXT: return %[[C]]
func.func @constants() -> tensor<2xf32> {
  %a = "xt.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "xt.constant"() {value = dense<[4.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %c = "xt.add"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %c : tensor<2xf32>
}

// -----
// What makes much data out of little stays, and so does what depends on a symbol or on chance.
// CHECK-LABEL: @stays
// CHECK: xt.broadcast
// CHECK: xt.iota
// CHECK: xt.random_uniform
// CHECK: xt.dim
func.func @stays() -> (tensor<512xf32>, tensor<9xi64>, tensor<2xf32>, tensor<i64>) {
  %a = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %b = "xt.broadcast"(%a) {shape = [512]} : (tensor<f32>) -> tensor<512xf32>
  %c = "xt.iota"() {axis = 0 : i64, dtype = i64, shape = [9]} : () -> tensor<9xi64>
  %d = "xt.random_uniform"() {dtype = f32, high = 1.0 : f64, low = 0.0 : f64, operandSegmentSizes = array<i32: 0, 0>, seed = 0 : i64, shape = [2]} : () -> tensor<2xf32>
  %e = "xt.dim"() {value = ["n"]} : () -> tensor<i64>
  return %b, %c, %d, %e : tensor<512xf32>, tensor<9xi64>, tensor<2xf32>, tensor<i64>
}

// -----
// CHECK-LABEL: @joins
// CHECK: dense<[1, 2, 3]> : tensor<3xi64>
func.func @joins() -> tensor<3xi64> {
  %a = "xt.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = "xt.constant"() {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %c = "xtv.concatenate"(%a, %b) {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  return %c : tensor<3xi64>
}

// -----
// A result without elements is a constant, but not where the op counts what it keeps.
// CHECK-LABEL: func.func @counted
// CHECK-NOT: xt.neg
// CHECK: "xt.compress"
func.func @counted(%x: tensor<3x2x0xf32>, %keep: tensor<2xi1>) -> (tensor<3x?x0xf32, [3, "m", 0]>, tensor<3x2x0xf32>) {
  %0 = "xt.compress"(%x, %keep) {symbol = "m", axis = 1 : i64, flat = false} : (tensor<3x2x0xf32>, tensor<2xi1>) -> tensor<3x?x0xf32, [3, "m", 0]>
  %1 = "xt.neg"(%x) : (tensor<3x2x0xf32>) -> tensor<3x2x0xf32>
  return %0, %1 : tensor<3x?x0xf32, [3, "m", 0]>, tensor<3x2x0xf32>
}

// -----
// Nothing folds into more bytes: a table of bytes stays one, what is made of it folds where that has fewer.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[T:.*]] = "xt.constant"() {value = dense<{{.*}}> : tensor<2x512xi8>}
// CHECK: %[[F:.*]] = "xt.convert"(%[[T]]) {dtype = f32
// CHECK: %[[S:.*]] = "xt.constant"() {value = dense<[5.120000e+02, 1.024000e+03]> : tensor<2xf32>}
// CHECK: return %[[F]], %[[S]]
func.func @narrow() -> (tensor<2x512xf32>, tensor<2xf32>) {
  %a = "xt.constant"() {value = dense<1> : tensor<1x512xi8>} : () -> tensor<1x512xi8>
  %b = "xt.constant"() {value = dense<2> : tensor<1x512xi8>} : () -> tensor<1x512xi8>
  %t = "xtv.concatenate"(%a, %b) {axis = 0 : i64} : (tensor<1x512xi8>, tensor<1x512xi8>) -> tensor<2x512xi8>
  %f = "xt.convert"(%t) {dtype = f32, saturate = false} : (tensor<2x512xi8>) -> tensor<2x512xf32>
  %s = "xt.reduce"(%f) {kind = "sum", axes = [1], keepdims = false} : (tensor<2x512xf32>) -> tensor<2xf32>
  return %f, %s : tensor<2x512xf32>, tensor<2xf32>
}

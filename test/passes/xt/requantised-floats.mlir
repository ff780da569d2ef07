// RUN: %xcc_opt %s --pass-pipeline="requantised-floats" --verify-each | filecheck %s

// CHECK-LABEL: func.func private @through_bytes(
// CHECK: %[[R:.*]] = "xt.round_clamp"(%arg0) {high = 248 : i64, low = -7 : i64}
// CHECK-NOT: ui8
// CHECK: return %[[R]]
func.func private @through_bytes(%x: tensor<4xf32>) -> tensor<4xf32> attributes {xt.kernel} {
  %z = "xt.constant"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>
  %q = "xt.requantize"(%x) {dtype = ui8, zero_point = 7 : i64} : (tensor<4xf32>) -> tensor<4xui8>
  %w = "xt.convert"(%q) {dtype = i32, saturate = false} : (tensor<4xui8>) -> tensor<4xi32>
  %s = "xt.sub"(%w, %z) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %f = "xt.convert"(%s) {dtype = f32, saturate = false} : (tensor<4xi32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// The bytes are stored too, or the zero points differ: they stay.
// CHECK-LABEL: func.func private @stored(
// CHECK-NOT: xt.round_clamp
func.func private @stored(%x: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xf32>) attributes {xt.kernel} {
  %q = "xt.requantize"(%x) {dtype = i8, zero_point = 0 : i64} : (tensor<4xf32>) -> tensor<4xi8>
  %w = "xt.convert"(%q) {dtype = i32, saturate = false} : (tensor<4xi8>) -> tensor<4xi32>
  %f = "xt.convert"(%w) {dtype = f32, saturate = false} : (tensor<4xi32>) -> tensor<4xf32>
  return %q, %f : tensor<4xi8>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @other_zero(
// CHECK-NOT: xt.round_clamp
func.func private @other_zero(%x: tensor<4xf32>) -> tensor<4xf32> attributes {xt.kernel} {
  %q = "xt.requantize"(%x) {dtype = i8, zero_point = 3 : i64} : (tensor<4xf32>) -> tensor<4xi8>
  %w = "xt.convert"(%q) {dtype = i32, saturate = false} : (tensor<4xi8>) -> tensor<4xi32>
  %f = "xt.convert"(%w) {dtype = f32, saturate = false} : (tensor<4xi32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

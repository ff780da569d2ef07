// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=aligned-rows | filecheck %s

// Rows of 2222 bytes become whole steps of 64 terms.
// CHECK-LABEL: func.func @odd(
// CHECK: "xt.pad"(%{{.*}}) {high = [0, 41]{{.*}} -> tensor<333x1152xf16>
// CHECK: "xt.pad"(%{{.*}}) {high = [0, 41]{{.*}} -> tensor<777x1152xf16>
// CHECK: "xt.dot_general"{{.*}} -> tensor<333x777xf16>
func.func @odd(%x: tensor<333x1111xf16>, %w: tensor<777x1111xf16>) -> tensor<333x777xf16> {
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], dtype = f16} : (tensor<333x1111xf16>, tensor<777x1111xf16>) -> tensor<333x777xf16>
  return %y : tensor<333x777xf16>
}

// Where whole steps would make the sum much longer, to the next word; the other operand gets rows of zeros.
// CHECK-LABEL: func.func @short(
// CHECK: "xt.pad"{{.*}} -> tensor<333x72xf16>
// CHECK: "xt.pad"{{.*}} -> tensor<72x128xf16>
func.func @short(%x: tensor<333x70xf16>, %w: tensor<70x128xf16>) -> tensor<333x128xf16> {
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f16} : (tensor<333x70xf16>, tensor<70x128xf16>) -> tensor<333x128xf16>
  return %y : tensor<333x128xf16>
}

// Aligned rows, and rows that are read by few tiles, stay.
// CHECK-LABEL: func.func @aligned(
// CHECK-NOT: xt.pad
// CHECK-LABEL: func.func @few(
// CHECK-NOT: xt.pad
func.func @aligned(%x: tensor<333x1112xf16>, %w: tensor<777x1112xf16>) -> tensor<333x777xf16> {
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], dtype = f16} : (tensor<333x1112xf16>, tensor<777x1112xf16>) -> tensor<333x777xf16>
  return %y : tensor<333x777xf16>
}
func.func @few(%x: tensor<16x1111xf16>, %w: tensor<777x1111xf16>) -> tensor<16x777xf16> {
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], dtype = f16} : (tensor<16x1111xf16>, tensor<777x1111xf16>) -> tensor<16x777xf16>
  return %y : tensor<16x777xf16>
}

// A weight of odd rows is turned where its columns are whole words.
// CHECK-LABEL: func.func @vocabulary(
// CHECK: %[[T:.*]] = "xt.transpose"(%{{.*}}) {perm = [1, 0]} : (tensor<128x777xf16>) -> tensor<777x128xf16>
// CHECK: "xt.dot_general"(%{{.*}}, %[[T]]) {{.*}}rhs_contract = [1]
func.func @vocabulary(%x: tensor<333x128xf16>) -> tensor<333x777xf16> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<128x777xf16>
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f16} : (tensor<333x128xf16>, tensor<128x777xf16>) -> tensor<333x777xf16>
  return %y : tensor<333x777xf16>
}

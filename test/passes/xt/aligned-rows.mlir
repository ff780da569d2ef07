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

// One copy of a value of odd rows serves the product that sums along them, whose matrix stays, and the one over its columns.
// CHECK-LABEL: func.func @head_gradients(
// CHECK: %[[T:.*]] = "xt.transpose"(%{{.*}}) {perm = [2, 0, 1]} : (tensor<2x64x777xf16>) -> tensor<777x2x64xf16>
// CHECK: "xt.dot_general"(%[[T]], %{{.*}}) {{.*}}lhs_contract = [0]{{.*}} (tensor<777x2x64xf16>, tensor<777x256xf16>)
// CHECK: %[[S:.*]] = "xt.transpose"(%{{.*}}) {perm = [2, 0, 1]} : (tensor<2x64x777xf16>) -> tensor<777x2x64xf16>
// CHECK: %[[M:.*]] = "xt.reshape"(%[[S]]) {shape = [777, 128]}
// CHECK: "xt.dot_general"(%[[M]], %{{.*}}) {{.*}}lhs_contract = [1]{{.*}} (tensor<777x128xf16>, tensor<128x256xf16>)
// CHECK-NOT: xt.pad
func.func @head_gradients(%g: tensor<2x64x777xf16>, %w: tensor<777x256xf16>, %x: tensor<128x256xf16>) -> (tensor<2x64x256xf16>, tensor<777x256xf16>) {
  %a = "xt.dot_general"(%g, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0], dtype = f16} : (tensor<2x64x777xf16>, tensor<777x256xf16>) -> tensor<2x64x256xf16>
  %m = "xt.reshape"(%g) {shape = [128, 777]} : (tensor<2x64x777xf16>) -> tensor<128x777xf16>
  %b = "xt.dot_general"(%m, %x) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0], dtype = f16} : (tensor<128x777xf16>, tensor<128x256xf16>) -> tensor<777x256xf16>
  return %a, %b : tensor<2x64x256xf16>, tensor<777x256xf16>
}

// f32, which asynchronous copies take one by one, stays where it is read along columns.
// CHECK-LABEL: func.func @columns_of_words(
// CHECK-NOT: xt.transpose
func.func @columns_of_words(%g: tensor<128x777xf32>, %x: tensor<128x256xf32>) -> tensor<777x256xf32> {
  %b = "xt.dot_general"(%g, %x) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0], dtype = f32} : (tensor<128x777xf32>, tensor<128x256xf32>) -> tensor<777x256xf32>
  return %b : tensor<777x256xf32>
}

// A product by FMAs copies elements one by one, wherever rows start.
// CHECK-LABEL: func.func @by_fma(
// CHECK-NOT: xt.pad
// CHECK: return
func.func @by_fma(%x: tensor<333x1111xf32>, %w: tensor<777x1111xf32>) -> tensor<333x777xf32> {
  %y = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], dtype = f32} : (tensor<333x1111xf32>, tensor<777x1111xf32>) -> tensor<333x777xf32>
  return %y : tensor<333x777xf32>
}

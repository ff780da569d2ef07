// RUN: %xcc_opt %s --pass-pipeline=move-views --target=cpu --chip=znver4 | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="move-views{in-place=true}" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=GPU

// Rows that are merged for a product and parted again behind its bias: neither is done.
// CHECK-LABEL: @merged_rows
// CHECK-NOT: xt.reshape
// CHECK: "xt.dot_general"(%{{.*}}, %{{.*}}) {{.*}}lhs_contract = [2]{{.*}} -> tensor<5x7x4xf32>
// CHECK: "xt.add"(%{{.*}}, %{{.*}}) : (tensor<5x7x4xf32>, tensor<4xf32>)
// CHECK-NOT: xt.reshape
// CHECK: return
func.func @merged_rows(%x: tensor<5x7x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<5x7x4xf32> {
  %m = "xt.reshape"(%x) {shape = [35, 3]} : (tensor<5x7x3xf32>) -> tensor<35x3xf32>
  %p = "xt.dot_general"(%m, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<35x3xf32>, tensor<3x4xf32>) -> tensor<35x4xf32>
  %s = "xt.add"(%p, %b) : (tensor<35x4xf32>, tensor<4xf32>) -> tensor<35x4xf32>
  %y = "xt.reshape"(%s) {shape = [5, 7, 4]} : (tensor<35x4xf32>) -> tensor<5x7x4xf32>
  %z = "xt.tanh"(%y) : (tensor<5x7x4xf32>) -> tensor<5x7x4xf32>
  return %z : tensor<5x7x4xf32>
}

// What is stored merged, too, as a forward saves it for its backward, is a view of what is not, where the
// weights' rows go along the sum: one kernel of a GPU makes both.
// GPU-LABEL: @saved_rows
// GPU: %[[S:.*]] = "xt.add"(%{{.*}}, %{{.*}}) : (tensor<5x7x4xf32>, tensor<4xf32>)
// GPU-DAG: %[[Z:.*]] = "xt.tanh"(%[[S]])
// GPU-DAG: %[[M:.*]] = "xt.reshape"(%[[S]]) {shape = [35, 4]}
// GPU: return %[[M]], %[[Z]]
func.func @saved_rows(%x: tensor<5x7x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> (tensor<35x4xf32>, tensor<5x7x4xf32>) {
  %m = "xt.reshape"(%x) {shape = [35, 3]} : (tensor<5x7x3xf32>) -> tensor<35x3xf32>
  %p = "xt.dot_general"(%m, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : (tensor<35x3xf32>, tensor<4x3xf32>) -> tensor<35x4xf32>
  %s = "xt.add"(%p, %b) : (tensor<35x4xf32>, tensor<4xf32>) -> tensor<35x4xf32>
  %y = "xt.reshape"(%s) {shape = [5, 7, 4]} : (tensor<35x4xf32>) -> tensor<5x7x4xf32>
  %z = "xt.tanh"(%y) : (tensor<5x7x4xf32>) -> tensor<5x7x4xf32>
  return %s, %z : tensor<35x4xf32>, tensor<5x7x4xf32>
}

// The same for sizes that are known when it runs; dims of the sum stay merged.
// CHECK-LABEL: @symbolic_rows
// CHECK: %[[X:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<?x?x6xf32, ["b", "s", 6]>
// CHECK: "xt.dot_general"(%[[X]], %{{.*}}) {{.*}}lhs_contract = [2]
// CHECK-NOT: xt.reshape
// CHECK: return
func.func @symbolic_rows(%x: tensor<?x?x2x3xf32, ["b", "s", 2, 3]>, %w: tensor<6x4xf32>) -> tensor<?x?x4xf32, ["b", "s", 4]> {
  %m = "xt.reshape"(%x) {shape = ["b*s", 6]} : (tensor<?x?x2x3xf32, ["b", "s", 2, 3]>) -> tensor<?x6xf32, ["b*s", 6]>
  %p = "xt.dot_general"(%m, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x6xf32, ["b*s", 6]>, tensor<6x4xf32>) -> tensor<?x4xf32, ["b*s", 4]>
  %y = "xt.reshape"(%p) {shape = ["b", "s", 4]} : (tensor<?x4xf32, ["b*s", 4]>) -> tensor<?x?x4xf32, ["b", "s", 4]>
  return %y : tensor<?x?x4xf32, ["b", "s", 4]>
}

// Rows that nobody parts again stay merged.
// CHECK-LABEL: @rows_that_stay
// CHECK: xt.reshape
// CHECK: "xt.dot_general"{{.*}} -> tensor<35x4xf32>
// CHECK-NOT: xt.reshape
// CHECK: return
func.func @rows_that_stay(%x: tensor<5x7x3xf32>, %w: tensor<3x4xf32>) -> tensor<35x4xf32> {
  %m = "xt.reshape"(%x) {shape = [35, 3]} : (tensor<5x7x3xf32>) -> tensor<35x3xf32>
  %p = "xt.dot_general"(%m, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<35x3xf32>, tensor<3x4xf32>) -> tensor<35x4xf32>
  return %p : tensor<35x4xf32>
}

// Rows in another order, turned back behind a scale of each column: a product of the rows as they lie.
// CHECK-LABEL: @turned_rows
// CHECK-NOT: xt.transpose
// CHECK: return
func.func @turned_rows(%x: tensor<5x7x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<5x7x4xf32> {
  %t = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<5x7x3xf32>) -> tensor<7x5x3xf32>
  %p = "xt.dot_general"(%t, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]} : (tensor<7x5x3xf32>, tensor<3x4xf32>) -> tensor<7x5x4xf32>
  %s = "xt.mul"(%p, %b) : (tensor<7x5x4xf32>, tensor<4xf32>) -> tensor<7x5x4xf32>
  %y = "xt.transpose"(%s) {perm = [1, 0, 2]} : (tensor<7x5x4xf32>) -> tensor<5x7x4xf32>
  return %y : tensor<5x7x4xf32>
}

// Queries and keys of one product: slices of its heads, which attention reads in place.
// CHECK-LABEL: @heads
// CHECK: %[[P:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<5x7x2x4x3xf32>
// CHECK: %[[Q:.*]] = "xt.slice"(%[[P]]) {{.*}} -> tensor<5x7x1x4x3xf32>
// CHECK: %[[R:.*]] = "xt.reshape"(%[[Q]]) {{.*}} -> tensor<5x7x4x3xf32>
// CHECK: "xt.transpose"(%[[R]]) {perm = [0, 2, 1, 3]}
func.func @heads(%x: tensor<5x7x8xf32>, %w: tensor<8x24xf32>) -> (tensor<5x4x7x3xf32>, tensor<5x4x7x3xf32>) {
  %p = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]} : (tensor<5x7x8xf32>, tensor<8x24xf32>) -> tensor<5x7x24xf32>
  %s = "xt.reshape"(%p) {shape = [5, 7, 2, 12]} : (tensor<5x7x24xf32>) -> tensor<5x7x2x12xf32>
  %t = "xt.transpose"(%s) {perm = [2, 0, 1, 3]} : (tensor<5x7x2x12xf32>) -> tensor<2x5x7x12xf32>
  %q = "xt.slice"(%t) {starts = [0, 0, 0, 0], limits = [1, 5, 7, 12], strides = [1, 1, 1, 1]} : (tensor<2x5x7x12xf32>) -> tensor<1x5x7x12xf32>
  %k = "xt.slice"(%t) {starts = [1, 0, 0, 0], limits = [2, 5, 7, 12], strides = [1, 1, 1, 1]} : (tensor<2x5x7x12xf32>) -> tensor<1x5x7x12xf32>
  %q4 = "xt.reshape"(%q) {shape = [5, 7, 4, 3]} : (tensor<1x5x7x12xf32>) -> tensor<5x7x4x3xf32>
  %k4 = "xt.reshape"(%k) {shape = [5, 7, 4, 3]} : (tensor<1x5x7x12xf32>) -> tensor<5x7x4x3xf32>
  %qt = "xt.transpose"(%q4) {perm = [0, 2, 1, 3]} : (tensor<5x7x4x3xf32>) -> tensor<5x4x7x3xf32>
  %kt = "xt.transpose"(%k4) {perm = [0, 2, 1, 3]} : (tensor<5x7x4x3xf32>) -> tensor<5x4x7x3xf32>
  return %qt, %kt : tensor<5x4x7x3xf32>, tensor<5x4x7x3xf32>
}

// A matrix that lies along the sum: GPUs read it so.
// CHECK-LABEL: @matrix_along_the_sum
// CHECK: xt.transpose
// GPU-LABEL: @matrix_along_the_sum
// GPU-NOT: xt.transpose
// GPU: "xt.dot_general"{{.*}}rhs_contract = [1]
func.func @matrix_along_the_sum(%x: tensor<5x3xf16>, %w: tensor<4x3xf16>) -> tensor<5x4xf16> {
  %t = "xt.transpose"(%w) {perm = [1, 0]} : (tensor<4x3xf16>) -> tensor<3x4xf16>
  %p = "xt.dot_general"(%x, %t) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<5x3xf16>, tensor<3x4xf16>) -> tensor<5x4xf16>
  return %p : tensor<5x4xf16>
}

// What a composite makes is turned before its dims are merged: its kernel stores it so.
// CHECK-LABEL: func.func @merged_heads(
// CHECK: %[[A:.*]] = "xt.attention"
// CHECK: %[[T:.*]] = "xt.transpose"(%[[A]]) {perm = [2, 0, 1, 3]}
// CHECK: "xt.reshape"(%[[T]]) {shape = [8, 6, 16]}
func.func @merged_heads(%x: tensor<2x3x8x16xf16>) -> tensor<8x6x16xf16> {
  %0 = "xt.attention"(%x, %x, %x) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<2x3x8x16xf16>, tensor<2x3x8x16xf16>, tensor<2x3x8x16xf16>) -> tensor<2x3x8x16xf16>
  %1 = "xt.reshape"(%0) {shape = [6, 8, 16]} : (tensor<2x3x8x16xf16>) -> tensor<6x8x16xf16>
  %2 = "xt.transpose"(%1) {perm = [1, 0, 2]} : (tensor<6x8x16xf16>) -> tensor<8x6x16xf16>
  return %2 : tensor<8x6x16xf16>
}

// -----
// Of a product that a slice alone reads, behind pointwise ops, the part is computed; of one that others read all is.
// CHECK-LABEL: func.func @part_of_product(
// CHECK-DAG: %[[X:.*]] = "xt.slice"(%arg0) {limits = [2, 128, 16], starts = [0, 127, 0]
// CHECK-DAG: %[[W:.*]] = "xt.slice"(%arg1) {limits = [2, 16, 12], starts = [0, 0, 4], strides = [1, 1, 2]
// CHECK: %[[Y:.*]] = "xt.dot_general"(%[[X]], %[[W]])
// CHECK: %[[B:.*]] = "xt.slice"(%arg2) {limits = [12], starts = [4], strides = [2]
// CHECK: %[[Z:.*]] = "xt.add"(%[[Y]], %[[B]])
// CHECK: %[[ALL:.*]] = "xt.dot_general"(%arg0, %arg1)
// CHECK: %[[P:.*]] = "xt.slice"(%[[ALL]])
// CHECK: return %[[Z]], %[[ALL]], %[[P]]
func.func @part_of_product(%x: tensor<2x128x16xf32>, %w: tensor<2x16x12xf32>, %b: tensor<12xf32>) -> (tensor<2x1x4xf32>, tensor<2x128x12xf32>, tensor<2x1x12xf32>) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<2x128x16xf32>, tensor<2x16x12xf32>) -> tensor<2x128x12xf32>
  %1 = "xt.add"(%0, %b) : (tensor<2x128x12xf32>, tensor<12xf32>) -> tensor<2x128x12xf32>
  %2 = "xt.slice"(%1) {starts = [0, 127, 4], limits = [2, 128, 12], strides = [1, 1, 2]} : (tensor<2x128x12xf32>) -> tensor<2x1x4xf32>
  %3 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<2x128x16xf32>, tensor<2x16x12xf32>) -> tensor<2x128x12xf32>
  %4 = "xt.slice"(%3) {starts = [0, 127, 0], limits = [2, 128, 12], strides = [1, 1, 1]} : (tensor<2x128x12xf32>) -> tensor<2x1x12xf32>
  return %2, %3, %4 : tensor<2x1x4xf32>, tensor<2x128x12xf32>, tensor<2x1x12xf32>
}

// -----
// So it is where several pointwise ops read the product, if all that is read of them is the part.
// CHECK-LABEL: func.func @part_of_activation(
// CHECK-NOT: tensor<128x32xf32>
// CHECK: return
func.func @part_of_activation(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>) -> tensor<1x32xf32> {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = "xt.tanh"(%0) : (tensor<128x32xf32>) -> tensor<128x32xf32>
  %2 = "xt.mul"(%0, %1) : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<128x32xf32>
  %3 = "xt.slice"(%2) {starts = [127, 0], limits = [128, 32], strides = [1, 1]} : (tensor<128x32xf32>) -> tensor<1x32xf32>
  return %3 : tensor<1x32xf32>
}

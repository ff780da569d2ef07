// RUN: %xcc_opt %s --pass-pipeline="add-columns, mlir(canonicalize, cse)" --verify-each --split-input-file | filecheck %s

// Four taps of windows two apart are two of two phases: one of them is for the places behind.
// CHECK-LABEL: func.func @strided(
// CHECK: %[[TAPS:.*]] = "xt.reshape"(%arg0) {shape = [1, 8, 4, 20]}
// CHECK: %[[T:.*]] = "xt.reshape"(%[[TAPS]]) {shape = [1, 8, 2, 2, 20]}
// CHECK-DAG: %[[FIRST:.*]] = "xt.slice"(%[[T]]) {limits = [1, 8, 1, 2, 20], starts = [0, 0, 0, 0, 0]
// CHECK-DAG: %[[SECOND:.*]] = "xt.slice"(%[[T]]) {limits = [1, 8, 2, 2, 20], starts = [0, 0, 1, 0, 0]
// CHECK-DAG: %[[A:.*]] = "xt.pad"(%[[FIRST]]) {high = [0, 0, 0, 0, 1], {{.*}}low = [0, 0, 0, 0, 0]
// CHECK-DAG: %[[B:.*]] = "xt.pad"(%[[SECOND]]) {high = [0, 0, 0, 0, 0], {{.*}}low = [0, 0, 0, 0, 1]
// CHECK: %[[SUM:.*]] = "xt.add"(%[[A]], %[[B]])
// CHECK: %[[PHASES:.*]] = "xt.reshape"(%[[SUM]]) {shape = [1, 8, 2, 21]}
// CHECK: %[[BETWEEN:.*]] = "xt.transpose"(%[[PHASES]]) {perm = [0, 1, 3, 2]}
// CHECK: "xt.reshape"(%[[BETWEEN]]) {shape = [1, 8, 42]}
// CHECK-NOT: "xt.col2im"
func.func @strided(%x: tensor<1x32x20xf32>) -> tensor<1x8x42xf32> {
  %0 = "xt.col2im"(%x) {block = [4], dilations = [1], high = [0], image = [42], low = [0], strides = [2]} : (tensor<1x32x20xf32>) -> tensor<1x8x42xf32>
  return %0 : tensor<1x8x42xf32>
}

// -----
// Windows of a size that is known at run time, no phases; what lies in the padding is cut off.
// CHECK-LABEL: func.func @symbolic(
// CHECK-NOT: "xt.transpose"
// CHECK: "xt.slice"(%{{.*}}) {limits = [1, 8, "n + 1"], starts = [0, 0, 1]
func.func @symbolic(%x: tensor<1x24x?xf32, [1, 24, "n"]>) -> tensor<1x8x?xf32, [1, 8, "n"]> {
  %0 = "xt.col2im"(%x) {block = [3], dilations = [1], high = [1], image = ["n"], low = [1], strides = [1]} : (tensor<1x24x?xf32, [1, 24, "n"]>) -> tensor<1x8x?xf32, [1, 8, "n"]>
  return %0 : tensor<1x8x?xf32, [1, 8, "n"]>
}

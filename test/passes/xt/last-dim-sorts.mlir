// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline=last-dim-sorts | filecheck %s

// CHECK-LABEL: func.func @across
// CHECK: %[[X:.*]] = "xt.transpose"(%arg0) {perm = [0, 2, 1]}
// CHECK: %[[T:.*]]:2 = "xt.top_k"(%[[X]]) {axis = 2
// CHECK: %[[V:.*]] = "xt.transpose"(%[[T]]#0) {perm = [0, 2, 1]}
// CHECK: %[[I:.*]] = "xt.transpose"(%[[T]]#1) {perm = [0, 2, 1]}
// CHECK: return %[[V]], %[[I]]
func.func @across(%x: tensor<4x100x?xf32, [4, 100, "n"]>) -> (tensor<4x3x?xf32, [4, 3, "n"]>, tensor<4x3x?xi64, [4, 3, "n"]>) {
  %v, %i = "xt.top_k"(%x) {axis = 1, k = [3], largest = true} : (tensor<4x100x?xf32, [4, 100, "n"]>) -> (tensor<4x3x?xf32, [4, 3, "n"]>, tensor<4x3x?xi64, [4, 3, "n"]>)
  return %v, %i : tensor<4x3x?xf32, [4, 3, "n"]>, tensor<4x3x?xi64, [4, 3, "n"]>
}

// Of rows that lie side by side nothing is moved.
// CHECK-LABEL: func.func @along
// CHECK-NOT: xt.transpose
// CHECK: return
func.func @along(%x: tensor<4x100x1xf32>) -> tensor<4x100x1xf32> {
  %v, %i = "xt.sort"(%x) {axis = 1, descending = true, stable = true} : (tensor<4x100x1xf32>) -> (tensor<4x100x1xf32>, tensor<4x100x1xi64>)
  return %v : tensor<4x100x1xf32>
}

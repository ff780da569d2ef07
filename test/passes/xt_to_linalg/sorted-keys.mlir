// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// Rows of keys, of a value's bits and the index, are sorted by vectors where the indices go; of i64 by two words.
// CHECK-LABEL: func.func private @sorted
// CHECK-SAME: xcc.machine
// CHECK: scf.forall
// CHECK: vector.load %arg2[{{.*}}vector<8xi64>
// CHECK: vector.shuffle
// CHECK: arith.minui {{.*}} vector<8xi64>
// CHECK: vector.maskedload %arg2[
// CHECK: scf.while
func.func private @sorted(%x: tensor<4x?xf32, [4, "n"]>) -> (tensor<4x?xf32, [4, "n"]>, tensor<4x?xi64, [4, "n"]>) attributes {xt.kernel, xt.symbols = ["n"]} {
  %0:2 = "xt.sort"(%x) {axis = 1 : i64, descending = false, stable = true} : (tensor<4x?xf32, [4, "n"]>) -> (tensor<4x?xf32, [4, "n"]>, tensor<4x?xi64, [4, "n"]>)
  return %0#0, %0#1 : tensor<4x?xf32, [4, "n"]>, tensor<4x?xi64, [4, "n"]>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=select-places | filecheck %s

// Places are of 32 bits: a run of more elements is refused.
// CHECK: module attributes {xt.equal = {{\[}}["n", "min(2147483647, n)"]]}
// What is chosen is counted ahead; bools as they are, other types compared with zero.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<20x30xf32>
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<100xi1>
// CHECK: %[[F:.*]] = "xt.reshape"(%[[X]]) {{.*}} -> tensor<600xf32>
// CHECK: %[[S:.*]] = "xt.compare"(%[[F]], %{{.*}}) {direction = "ne"}
// CHECK: %[[N:.*]] = "xt.convert"(%[[S]]) {{.*}} -> tensor<600xi32>
// CHECK: %[[P:.*]] = "xt.cumulative"(%[[N]]) {{.*}}kind = "sum"
// CHECK: "xt.nonzero"(%[[X]], %[[P]]) {symbol = "a"}
// CHECK: %[[N2:.*]] = "xt.convert"(%[[C]]) {{.*}} -> tensor<100xi32>
// CHECK: %[[P2:.*]] = "xt.cumulative"(%[[N2]])
// CHECK: "xt.compress"(%{{.*}}, %[[C]], %[[P2]]) {{.*}}symbol = "b"
// A few elements are one thread's; sizes that are not known may be many.
// CHECK: "xt.nonzero"(%{{[a-z0-9]+}}) {symbol = "c"}
// CHECK: "xt.nonzero"(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {symbol = "d"}
func.func @main(%x: tensor<20x30xf32>, %c: tensor<100xi1>, %y: tensor<100x4xf16>, %s: tensor<9xf32>, %u: tensor<?xf32, ["n"]>)
    -> (tensor<2x?xi64, [2, "a"]>, tensor<?x4xf16, ["b", 4]>, tensor<1x?xi64, [1, "c"]>, tensor<1x?xi64, [1, "d"]>) {
  %0 = "xt.nonzero"(%x) {symbol = "a"} : (tensor<20x30xf32>) -> tensor<2x?xi64, [2, "a"]>
  %1 = "xt.compress"(%y, %c) {axis = 0, flat = false, symbol = "b"} : (tensor<100x4xf16>, tensor<100xi1>) -> tensor<?x4xf16, ["b", 4]>
  %2 = "xt.nonzero"(%s) {symbol = "c"} : (tensor<9xf32>) -> tensor<1x?xi64, [1, "c"]>
  %3 = "xt.nonzero"(%u) {symbol = "d"} : (tensor<?xf32, ["n"]>) -> tensor<1x?xi64, [1, "d"]>
  return %0, %1, %2, %3 : tensor<2x?xi64, [2, "a"]>, tensor<?x4xf16, ["b", 4]>, tensor<1x?xi64, [1, "c"]>, tensor<1x?xi64, [1, "d"]>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=select-places | filecheck %s

// Sizes that bounds keep small are not compared when the model runs.
// CHECK: module attributes {xt.dims = {n = [1, 4096]}} {
// CHECK: func.func @main(
// CHECK: "xt.nonzero"(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {symbol = "d"}
module attributes {xt.dims = {n = [1, 4096]}} {
  func.func @main(%u: tensor<?xf32, ["n"]>) -> tensor<1x?xi64, [1, "d"]> {
    %0 = "xt.nonzero"(%u) {symbol = "d"} : (tensor<?xf32, ["n"]>) -> tensor<1x?xi64, [1, "d"]>
    return %0 : tensor<1x?xi64, [1, "d"]>
  }
}

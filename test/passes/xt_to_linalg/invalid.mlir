// RUN: not %xcc_opt %s --pass-pipeline="xt-to-linalg" 2>&1 | filecheck %s

// CHECK: xt.cumulative{{.*}} makes a loop kernel and must be alone in it
func.func private @fused(%x: tensor<4xf32>) -> tensor<4xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.cumulative"(%x) {kind = "sum", axis = 0, exclusive = false, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

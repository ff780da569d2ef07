// RUN: %xcc_opt %s --pass-pipeline=form-kernels | filecheck %s

// A kernel that reads what its result replaces is asked for both in one memory; the other result replaces nothing.
// CHECK: "xtv.dispatch"(%arg1, %arg0) {kernel = @[[K:.*]], symbols = []}
// CHECK: func.func private @[[K]](%arg0: tensor<8xf32>, %arg1: tensor<8xf32>)
// CHECK-SAME: xt.shares = array<i64: 1, 1>
func.func @main(%p: tensor<8xf32> {xt.name = "p"}, %g: tensor<8xf32> {xt.name = "g"})
    -> (tensor<8xf32> {xt.name = "y"}, tensor<8xf32> {xt.name = "q", xt.updates = "p"}) {
  %0 = "xt.exp"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "xt.sub"(%p, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

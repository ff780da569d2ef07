// RUN: %xcc_opt %s | filecheck %s

// CHECK-LABEL: @loops
// CHECK: "xtv.while"
// CHECK: "xtv.scan"
// CHECK: out_axes = [1]
func.func @loops(%n: tensor<i64>, %x: tensor<?x4xf32, ["seq", 4]>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x?xf32, [4, "seq"]>) {
  %limit = "xt.constant"() {value = dense<9> : tensor<i64>} : () -> tensor<i64>
  %last = "xtv.while"(%n) ({
  ^bb0(%i: tensor<i64>):
    %more = "xt.compare"(%i, %limit) {direction = "lt"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    "xtv.yield"(%more) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i64>):
    %next = "xt.add"(%i, %i) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "xtv.yield"(%next) : (tensor<i64>) -> ()
  }) : (tensor<i64>) -> tensor<i64>
  %h1, %ys = "xtv.scan"(%h, %x) ({
  ^bb0(%c: tensor<4xf32>, %s: tensor<4xf32>):
    %sum = "xt.add"(%c, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "xtv.yield"(%sum, %s) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) {axes = [0], length = ["seq"], operandSegmentSizes = array<i32: 1, 1>, out_axes = [1], out_reverse = [0], reverse = [0]}
     : (tensor<4xf32>, tensor<?x4xf32, ["seq", 4]>) -> (tensor<4xf32>, tensor<4x?xf32, [4, "seq"]>)
  return %h1, %ys : tensor<4xf32>, tensor<4x?xf32, [4, "seq"]>
}

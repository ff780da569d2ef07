// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="form-kernels{beside=4}" --split-input-file | filecheck %s

// What stands behind a requirement about a counted size runs after the count: it shares no launch with what is counted.
// CHECK-LABEL: func.func @apart
// CHECK: %[[MASK:.*]] = "xtv.dispatch"(%arg0) {kernel = @compare_0
// CHECK: "xtv.dispatch"(%[[MASK]]) {{.*}}xt.binds = ["k", "n"]
// CHECK: "xtv.require"() {equal = ["k", "m"]
// CHECK: "xtv.dispatch"(%arg1) {kernel = @exp_0
func.func @apart(%a: tensor<?xf32, ["n"]> {xt.name = "a"}, %b: tensor<?xf32, ["m"]> {xt.name = "b"})
    -> (tensor<1x?xi64, [1, "k"]> {xt.name = "p"}, tensor<?xf32, ["m"]> {xt.name = "y"}) {
  %0 = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %1 = "xt.compare"(%a, %0) {direction = "eq"} : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xi1, ["n"]>
  %2 = "xt.nonzero"(%1) {symbol = "k"} : (tensor<?xi1, ["n"]>) -> tensor<1x?xi64, [1, "k"]>
  "xtv.require"() {equal = ["k", "m"], message = "m"} : () -> ()
  %3 = "xt.exp"(%b) : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  return %2, %3 : tensor<1x?xi64, [1, "k"]>, tensor<?xf32, ["m"]>
}

// -----

// Nor are what is counted and what reads it one kernel, with the requirement between them.
// CHECK-LABEL: func.func @read_twice
// CHECK: "xtv.dispatch"(%arg0) {kernel = @compare_0
// CHECK: xt.binds = ["k", "n"]
// CHECK: "xtv.require"() {equal = ["k", "m"]
// CHECK: kernel = @select_0
func.func @read_twice(%a: tensor<?xf32, ["n"]> {xt.name = "a"}, %b: tensor<?xf32, ["m"]> {xt.name = "b"})
    -> (tensor<1x?xi64, [1, "k"]> {xt.name = "p"}, tensor<?xf32, ["n"]> {xt.name = "y"}) {
  %0 = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %1 = "xt.compare"(%a, %0) {direction = "eq"} : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xi1, ["n"]>
  %2 = "xt.nonzero"(%1) {symbol = "k"} : (tensor<?xi1, ["n"]>) -> tensor<1x?xi64, [1, "k"]>
  "xtv.require"() {equal = ["k", "m"], message = "m"} : () -> ()
  %3 = "xt.select"(%1, %a, %0) : (tensor<?xi1, ["n"]>, tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["n"]>
  return %2, %3 : tensor<1x?xi64, [1, "k"]>, tensor<?xf32, ["n"]>
}

// -----

// A size that a step counts is read in that step, also where a region inside it takes the number.
// CHECK-LABEL: func.func @counted_in_a_step
// CHECK: "xtv.scan"
// CHECK: xt.binds = ["k", "n"]
// CHECK: %[[SIZE:.*]] = "xt.dim"() {value = ["k"]}
// CHECK: "xtv.if"
// CHECK: "xtv.yield"(%[[SIZE]])
func.func @counted_in_a_step(%a: tensor<4x?xf32, [4, "n"]> {xt.name = "a"}, %s: tensor<i64> {xt.name = "s"})
    -> (tensor<i64> {xt.name = "y"}) {
  %0 = "xtv.scan"(%s, %a) ({
  ^bb0(%seen: tensor<i64>, %row: tensor<?xf32, ["n"]>):
    %1 = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "xt.compare"(%row, %1) {direction = "eq"} : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xi1, ["n"]>
    %3 = "xt.nonzero"(%2) {symbol = "k"} : (tensor<?xi1, ["n"]>) -> tensor<1x?xi64, [1, "k"]>
    %4 = "xt.dim"() {value = ["k"]} : () -> tensor<i64>
    %5 = "xt.compare"(%seen, %4) {direction = "eq"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %6 = "xtv.if"(%5) ({
      "xtv.yield"(%4) : (tensor<i64>) -> ()
    }, {
      %7 = "xtv.fail"() {message = "m"} : () -> tensor<i64>
      "xtv.yield"(%7) : (tensor<i64>) -> ()
    }) : (tensor<i1>) -> tensor<i64>
    "xtv.yield"(%6) : (tensor<i64>) -> ()
  }) {axes = [0], length = [4], operandSegmentSizes = array<i32: 1, 1>, out_axes = [], out_reverse = [], reverse = [0]} : (tensor<i64>, tensor<4x?xf32, [4, "n"]>) -> tensor<i64>
  return %0 : tensor<i64>
}

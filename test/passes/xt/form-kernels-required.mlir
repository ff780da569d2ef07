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

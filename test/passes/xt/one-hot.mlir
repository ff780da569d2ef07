// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="one-hot, mlir(canonicalize, cse)" | filecheck %s

// CHECK-LABEL: func.func @one_hot
// CHECK: %[[LINE:.*]] = "xt.iota"() {axis = 1 : i64, dtype = i32, shape = [1, 1000]}
// CHECK: %[[AT:.*]] = "xt.convert"(%{{.*}}) {dtype = i32
// CHECK: %[[THERE:.*]] = "xt.compare"(%[[LINE]], %[[AT]]) {direction = "eq"}
// CHECK: "xt.select"(%[[THERE]], %arg1, %{{.*}}) : (tensor<8x1000xi1>, tensor<8x1xf32>, tensor<f32>) -> tensor<8x1000xf32>
func.func @one_hot(%t: tensor<8x1xi64>, %u: tensor<8x1xf32>) -> tensor<8x1000xf32> {
  %c = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.broadcast"(%c) {shape = [8, 1000]} : (tensor<f32>) -> tensor<8x1000xf32>
  %y = "xt.scatter_elements"(%z, %t, %u) {axis = 1, reduction = "none"} : (tensor<8x1000xf32>, tensor<8x1xi64>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  return %y : tensor<8x1000xf32>
}

// What multiplies a row multiplies its element, which is the row's sum.
// CHECK-LABEL: func.func @summed
// CHECK: %[[U:.*]] = "xt.mul"(%arg1, %arg2) : (tensor<8x1xf32>, tensor<8x1xf32>)
// CHECK: %[[ROWS:.*]] = "xt.select"(%{{.*}}, %[[U]], %{{.*}})
// CHECK: return %[[ROWS]], %[[U]]
func.func @summed(%t: tensor<8x1xi64>, %u: tensor<8x1xf32>, %r: tensor<8x1xf32>) -> (tensor<8x1000xf32>, tensor<8x1xf32>) {
  %c = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.broadcast"(%c) {shape = [8, 1000]} : (tensor<f32>) -> tensor<8x1000xf32>
  %y = "xt.scatter_elements"(%z, %t, %u) {axis = 1, reduction = "none"} : (tensor<8x1000xf32>, tensor<8x1xi64>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  %m = "xt.mul"(%y, %r) : (tensor<8x1000xf32>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  %s = "xt.reduce"(%m) {kind = "sum", axes = [1], keepdims = true} : (tensor<8x1000xf32>) -> tensor<8x1xf32>
  return %m, %s : tensor<8x1000xf32>, tensor<8x1xf32>
}

// What the rest is; rows of an unknown size.
// CHECK-LABEL: func.func @added
// CHECK-DAG: "xt.dim"() {value = ["n"]}
// CHECK-DAG: "xt.iota"() {axis = 0 : i64, dtype = i64, shape = ["n", 1]}
// CHECK-DAG: %[[SUM:.*]] = "xt.add"(%arg1, %{{.*}})
// CHECK: "xt.select"(%{{.*}}, %[[SUM]], %{{.*}})
func.func @added(%t: tensor<1x8xi64>, %u: tensor<1x8xf32>, %x: tensor<?xf32, ["n"]>) -> tensor<?x8xf32, ["n", 8]> {
  %c = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.broadcast"(%c) {shape = ["n", 8]} : (tensor<f32>) -> tensor<?x8xf32, ["n", 8]>
  %y = "xt.scatter_elements"(%z, %t, %u) {axis = 0, reduction = "add"} : (tensor<?x8xf32, ["n", 8]>, tensor<1x8xi64>, tensor<1x8xf32>) -> tensor<?x8xf32, ["n", 8]>
  return %y : tensor<?x8xf32, ["n", 8]>
}

// Two elements a row, which may be one; a tensor that is not one number.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: "xt.scatter_elements"
func.func @others(%x: tensor<8x1000xf32>, %t: tensor<8x2xi64>, %u: tensor<8x2xf32>, %v: tensor<8x1xi64>, %w: tensor<8x1xf32>) -> (tensor<8x1000xf32>, tensor<8x1000xf32>) {
  %c = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %z = "xt.broadcast"(%c) {shape = [8, 1000]} : (tensor<f32>) -> tensor<8x1000xf32>
  %y = "xt.scatter_elements"(%z, %t, %u) {axis = 1, reduction = "none"} : (tensor<8x1000xf32>, tensor<8x2xi64>, tensor<8x2xf32>) -> tensor<8x1000xf32>
  %q = "xt.scatter_elements"(%x, %v, %w) {axis = 1, reduction = "none"} : (tensor<8x1000xf32>, tensor<8x1xi64>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  return %y, %q : tensor<8x1000xf32>, tensor<8x1000xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=unique-runs | filecheck %s

// CHECK-LABEL: func.func @sorted
// CHECK: %[[S:.*]]:2 = "xt.sort"
// CHECK: %[[R:.*]] = "xt.cumulative"(%{{.*}}) {{.*}}kind = "sum"
// CHECK: %{{.*}} = "xt.cumulative"(%{{.*}}) {{.*}}exclusive = true, kind = "min", reverse = true
// CHECK-NOT: xt.scatter_elements
// CHECK: "xt.unique_runs"(%[[S]]#0, %[[S]]#1, %[[R]], %{{.*}}, %{{.*}}) {symbol = "k"}
func.func @sorted(%x: tensor<20x?xi32, [20, "n"]>) -> tensor<?xi32, ["k"]> {
  %v, %f, %i, %c = "xt.unique"(%x) {axis = 0, flat = true, sorted = true, symbol = "k"} : (tensor<20x?xi32, [20, "n"]>) -> (tensor<?xi32, ["k"]>, tensor<?xi64, ["k"]>, tensor<?xi64, ["20*n"]>, tensor<?xi64, ["k"]>)
  return %v : tensor<?xi32, ["k"]>
}

// By first use: the first elements of runs are counted in the order of x.
// CHECK-LABEL: func.func @by_use
// CHECK: "xt.scatter_elements"
// CHECK: "xt.unique_runs"
func.func @by_use(%x: tensor<100xf32>) -> tensor<?xf32, ["k"]> {
  %v, %f, %i, %c = "xt.unique"(%x) {axis = 0, flat = true, sorted = false, symbol = "k"} : (tensor<100xf32>) -> (tensor<?xf32, ["k"]>, tensor<?xi64, ["k"]>, tensor<100xi64>, tensor<?xi64, ["k"]>)
  return %v : tensor<?xf32, ["k"]>
}

// Slices and a few elements stay.
// CHECK-LABEL: func.func @stays
// CHECK: "xt.unique"({{.*}}flat = false
// CHECK: "xt.unique"({{.*}}flat = true
func.func @stays(%x: tensor<100x4xf32>, %y: tensor<10xf32>) -> (tensor<?x4xf32, ["k", 4]>, tensor<?xf32, ["j"]>) {
  %v, %f, %i, %c = "xt.unique"(%x) {axis = 0, flat = false, sorted = true, symbol = "k"} : (tensor<100x4xf32>) -> (tensor<?x4xf32, ["k", 4]>, tensor<?xi64, ["k"]>, tensor<100xi64>, tensor<?xi64, ["k"]>)
  %w, %g, %j, %d = "xt.unique"(%y) {axis = 0, flat = true, sorted = true, symbol = "j"} : (tensor<10xf32>) -> (tensor<?xf32, ["j"]>, tensor<?xi64, ["j"]>, tensor<10xi64>, tensor<?xi64, ["j"]>)
  return %v, %w : tensor<?x4xf32, ["k", 4]>, tensor<?xf32, ["j"]>
}

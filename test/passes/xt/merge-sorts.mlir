// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=merge-sorts | filecheck %s

// Keys of the same order, runs, merges of several at a time, and the values at the sorted places.
// CHECK-LABEL: func.func @rows
// CHECK: "xt.bitcast"
// CHECK: %[[S:.*]]:2 = "xt.sort_runs"(%{{.*}}) {run = 64 : i64} : (tensor<256x4096xi32>)
// CHECK: %[[T:.*]]:2 = "xt.merge_runs"(%[[S]]#0, %[[S]]#1) {keep = 4096 : i64, run = 64 : i64, ways = [[WAYS:.*]] : i64}
// CHECK: "xt.merge_runs"(%[[T]]#0, %[[T]]#1) {keep = 4096 : i64, run = {{.*}}, ways = [[WAYS]] : i64}
// CHECK: "xt.gather_elements"(%{{.*}}, %{{.*}}) {axis = 1 : i64}
func.func @rows(%x: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
  %v, %i = "xt.sort"(%x) {axis = 1 : i64, descending = false, stable = true} : (tensor<256x4096xf32>) -> (tensor<256x4096xf32>, tensor<256x4096xi64>)
  return %v : tensor<256x4096xf32>
}

// A size that may be anything: merges until no row is longer than a run.
// CHECK-LABEL: func.func @any_size
// CHECK: "xt.sort_runs"(%{{.*}}) {run = 64 : i64}
// CHECK-COUNT-9: "xt.merge_runs"
// CHECK-NOT: xt.merge_runs
func.func @any_size(%x: tensor<?xi32, ["n"]>) -> tensor<?xi32, ["n"]> {
  %v, %i = "xt.sort"(%x) {axis = 0 : i64, descending = false, stable = true} : (tensor<?xi32, ["n"]>) -> (tensor<?xi32, ["n"]>, tensor<?xi64, ["n"]>)
  return %v : tensor<?xi32, ["n"]>
}

// CHECK-LABEL: func.func @short
// CHECK: xt.sort"
func.func @short(%x: tensor<100xf32>) -> tensor<100xf32> {
  %v, %i = "xt.sort"(%x) {axis = 0 : i64, descending = false, stable = true} : (tensor<100xf32>) -> (tensor<100xf32>, tensor<100xi64>)
  return %v : tensor<100xf32>
}

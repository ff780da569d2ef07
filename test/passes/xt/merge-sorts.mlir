// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=merge-sorts | filecheck %s

// A row that a workgroup holds is one's.
// CHECK-LABEL: func.func @rows
// CHECK: "xt.sort_rows"(%{{.*}}) {descending = false, keep = 4096 : i64} : (tensor<256x4096xf32>)
// CHECK-NOT: "xt.merge_runs"
func.func @rows(%x: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
  %v, %i = "xt.sort"(%x) {axis = 1 : i64, descending = false, stable = true} : (tensor<256x4096xf32>) -> (tensor<256x4096xf32>, tensor<256x4096xi64>)
  return %v : tensor<256x4096xf32>
}

// Keys of the same order, runs of which no more is left than k, one merge of all, and the values at their places.
// CHECK-LABEL: func.func @best
// CHECK: "xt.bitcast"
// CHECK: %[[S:.*]]:2 = "xt.sort_runs"(%{{.*}}) {keep = 64 : i64, run = 4096 : i64} : (tensor<64x32000xi32>) -> (tensor<64x512xi32>
// CHECK: %[[T:.*]]:2 = "xt.merge_runs"(%[[S]]#0, %[[S]]#1) {keep = 64 : i64, run = 64 : i64, ways = 8 : i64}
// CHECK-NOT: "xt.merge_runs"
// CHECK: "xt.gather_elements"(%{{.*}}, %{{.*}}) {axis = 1 : i64}
func.func @best(%x: tensor<64x32000xf32>) -> tensor<64x50xf32> {
  %v, %i = "xt.top_k"(%x) {axis = 1 : i64, k = [50], largest = true} : (tensor<64x32000xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>)
  return %v : tensor<64x50xf32>
}

// A size that may be anything: merges until no row is longer than a run.
// CHECK-LABEL: func.func @any_size
// CHECK: "xt.sort_runs"(%{{.*}}) {keep = [[KEPT:.*]] : i64, run = 1024 : i64}
// CHECK-COUNT-7: "xt.merge_runs"
// CHECK-NOT: xt.merge_runs
func.func @any_size(%x: tensor<?xi32, ["n"]>) -> tensor<?xi32, ["n"]> {
  %v, %i = "xt.sort"(%x) {axis = 0 : i64, descending = false, stable = true} : (tensor<?xi32, ["n"]>) -> (tensor<?xi32, ["n"]>, tensor<?xi64, ["n"]>)
  return %v : tensor<?xi32, ["n"]>
}

// CHECK-LABEL: func.func @short
// CHECK: xt.sort"
func.func @short(%x: tensor<16xf32>) -> tensor<16xf32> {
  %v, %i = "xt.sort"(%x) {axis = 0 : i64, descending = false, stable = true} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<16xi64>)
  return %v : tensor<16xf32>
}

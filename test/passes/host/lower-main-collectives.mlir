// What ranks do together is a statement each, in the order of @main.
// RUN: %xcc_opt %s --pass-pipeline=lower-main | filecheck %s

// CHECK: %[[X:.*]] = "host.buffer"() {kind = "input", name = "x"} : () -> memref<4x6xf32>
// CHECK: %[[S:.*]] = "host.buffer"() {kind = "temp"} : () -> memref<4x6xf32>
// CHECK: %[[G:.*]] = "host.buffer"() {kind = "temp"} : () -> memref<16x6xf32>
// CHECK: "host.collective"(%[[X]], %[[S]]) {axes = ["tp"], combine = "max", kind = "all_reduce"}
// CHECK: "host.collective"(%[[S]], %[[G]]) {axes = ["dp", "tp"], kind = "all_gather"}
// CHECK: {axes = ["dp"], combine = "add", kind = "reduce_scatter"}
// CHECK: {axes = ["dp"], kind = "all_to_all"}
// CHECK: {axes = ["dp"], kind = "permute", pairs = {{\[\[}}0, 1]]}
// CHECK: "host.collective"(%{{.*}}, %{{.*}}) {axes = ["tp"], kind = "broadcast", root = 1 : i64}
module attributes {xt.mesh = [["dp", 2], ["tp", 2]]} {
  func.func @main(%x: tensor<4x6xf32> {xt.name = "x"}) -> (tensor<8x6xf32> {xt.name = "y"}) {
    %0 = "xt.all_reduce"(%x) {axes = ["tp"], combine = "max"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = "xt.all_gather"(%0) {axes = ["dp", "tp"], dim = 0 : i64, ranks = 4 : i64} : (tensor<4x6xf32>) -> tensor<16x6xf32>
    %2 = "xt.reduce_scatter"(%1) {axes = ["dp"], combine = "add", dim = 0 : i64, ranks = 2 : i64} : (tensor<16x6xf32>) -> tensor<8x6xf32>
    %3 = "xt.all_to_all"(%2) {axes = ["dp"], concat = 0 : i64, ranks = 2 : i64, split = 0 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = "xt.permute"(%3) {axes = ["dp"], pairs = [0, 1]} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %5 = "xt.collective_broadcast"(%4) {axes = ["tp"], root = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %5 : tensor<8x6xf32>
  }
}

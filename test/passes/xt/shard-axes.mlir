// Ranks along dp have a part of the batch and all weights; those along tp parts of these. What is said wins.
// RUN: %xcc_opt %s --pass-pipeline='shard{mesh=dp:2}' --target=nvptx --chip=sm_90a | filecheck %s --check-prefixes=CHECK,DATA
// RUN: %xcc_opt %s --pass-pipeline='shard{mesh=dp:2,tp:2 rank=3}' --target=nvptx --chip=sm_90a | filecheck %s --check-prefixes=CHECK,BOTH
// RUN: %xcc_opt %s --pass-pipeline='shard{mesh=tp:4 shard=x=tp:1,y=tp:1,u*=tp:0}' --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=SAID

// A rank's batch is any number, of which the whole one is twice as many; the bounds are those of a rank.
// DATA: module attributes {xt.dims = {batch = [1, 32]}, xt.mesh = {{\[\[}}"dp", 2]]}
// BOTH: module attributes {xt.dims = {batch = [1, 32]}, xt.mesh = {{\[\[}}"dp", 2], ["tp", 2]]}
// CHECK: @main(%arg0: tensor<?x64xf32, ["batch", 64]> {xt.name = "x"}, %arg1: tensor<64xf32> {xt.name = "s"}) -> (tensor<?x64xf32, ["batch", 64]> {xt.name = "y"}, tensor<64xf32> {xt.name = "m"})
// DATA: "xt.weight"() {name = "up"} : () -> tensor<64x256xf32>
// DATA: "xt.dot_general"{{.*}} -> tensor<?x256xf32, ["batch", 256]>
// BOTH: "xt.weight"() {name = "up.tp"} : () -> tensor<64x128xf32>
// BOTH: %[[P:.*]] = "xt.dot_general"(%{{.*}}) {{.*}} -> tensor<?x64xf32, ["batch", 64]>
// BOTH: "xt.mul"(%[[P]], %arg1)
// BOTH-NEXT: "xt.all_reduce"(%{{.*}}) {axes = ["tp"], combine = "add"}
// CHECK: %[[S:.*]] = "xt.reduce"(%{{.*}}) {{.*}}kind = "sum"{{.*}} : (tensor<?x64xf32, ["batch", 64]>) -> tensor<64xf32>
// CHECK: "xt.all_reduce"(%[[S]]) {axes = ["dp"], combine = "add"} : (tensor<64xf32>) -> tensor<64xf32>

// SAID: @main(%arg0: tensor<?x16xf32, ["batch", 16]> {xt.name = "x"}, %arg1: tensor<64xf32> {xt.name = "s"}) -> (tensor<?x16xf32, ["batch", 16]> {xt.name = "y"}, tensor<64xf32> {xt.name = "m"})
// SAID: %[[U:.*]] = "xt.weight"() {name = "up.tp"} : () -> tensor<16x256xf32>
// SAID: "xt.dot_general"(%arg0, %[[U]])
module attributes {xt.dims = {batch = [1, 64]}} {
  func.func @main(%x: tensor<?x64xf32, ["batch", 64]> {xt.name = "x"}, %s: tensor<64xf32> {xt.name = "s"}) -> (tensor<?x64xf32, ["batch", 64]> {xt.name = "y"}, tensor<64xf32> {xt.name = "m"}) {
    %u = "xt.weight"() {name = "up"} : () -> tensor<64x256xf32>
    %d = "xt.weight"() {name = "down"} : () -> tensor<256x64xf32>
    %h = "xt.dot_general"(%x, %u) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x64xf32, ["batch", 64]>, tensor<64x256xf32>) -> tensor<?x256xf32, ["batch", 256]>
    %g = "xt.gelu"(%h) {approximate = "none"} : (tensor<?x256xf32, ["batch", 256]>) -> tensor<?x256xf32, ["batch", 256]>
    %p = "xt.dot_general"(%g, %d) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x256xf32, ["batch", 256]>, tensor<256x64xf32>) -> tensor<?x64xf32, ["batch", 64]>
    %y = "xt.mul"(%p, %s) : (tensor<?x64xf32, ["batch", 64]>, tensor<64xf32>) -> tensor<?x64xf32, ["batch", 64]>
    %m = "xt.reduce"(%y) {axes = [0], keepdims = false, kind = "sum"} : (tensor<?x64xf32, ["batch", 64]>) -> tensor<64xf32>
    return %y, %m : tensor<?x64xf32, ["batch", 64]>, tensor<64xf32>
  }
}

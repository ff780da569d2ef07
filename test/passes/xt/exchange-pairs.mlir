// Sums and gathers among two ranks are an exchange and arithmetic.
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs{rank=1}' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s --check-prefix=ANY
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs{rank=1}' --target=amdgcn --chip=gfx942 --split-input-file | filecheck %s --check-prefix=OTHER

// CHECK-LABEL: @sum
// CHECK: %[[Q:.*]] = "xt.permute"(%arg0) {axes = ["tp"], pairs = [0, 1, 1, 0]}
// CHECK-NEXT: %[[S:.*]] = "xt.add"(%arg0, %[[Q]])
// CHECK-NEXT: "xt.exp"(%[[S]])
// ANY-LABEL: @sum
// ANY: "xt.permute"
// OTHER-LABEL: @sum
// OTHER: "xt.all_reduce"
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @sum(%p: tensor<16x64xf16>, %x: tensor<16x64xf16>) -> tensor<16x64xf16> {
    %s = "xt.all_reduce"(%p) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %y = "xt.exp"(%s) : (tensor<16x64xf16>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
}

// -----
// What is added to a sum one of the two adds to its part, the first place to the first sum, the second to the next; not
// what is made behind.
// CHECK-LABEL: @added
// CHECK: %[[P:.*]] = "xt.permute"(%arg0)
// CHECK-NEXT: %[[S:.*]] = "xt.add"(%arg0, %[[P]])
// CHECK-NEXT: %[[T:.*]] = "xt.add"(%[[S]], %arg1)
// CHECK-NEXT: %[[Q:.*]] = "xt.permute"(%[[T]])
// CHECK-NEXT: %[[U:.*]] = "xt.add"(%[[T]], %[[Q]])
// CHECK-NEXT: %[[V:.*]] = "xt.permute"(%[[U]])
// CHECK-NEXT: %[[W:.*]] = "xt.add"(%[[U]], %[[V]])
// CHECK-NEXT: %[[L:.*]] = "xt.exp"(%arg1)
// CHECK-NEXT: "xt.add"(%[[W]], %[[L]])
// ANY-LABEL: @added
// OTHER-LABEL: @added
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @added(%p: tensor<16x64xf16>, %x: tensor<16x64xf16>) -> tensor<16x64xf16> {
    %s = "xt.all_reduce"(%p) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %t = "xt.add"(%s, %x) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    %u = "xt.all_reduce"(%t) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %v = "xt.add"(%x, %u) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    %w = "xt.all_reduce"(%v) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %l = "xt.exp"(%x) : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %y = "xt.add"(%w, %l) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
}

// -----
// What came lies on its own side; a program that is the same on all ranks does not know which.
// CHECK-LABEL: @gather
// CHECK: %[[Q:.*]] = "xt.permute"(%arg0)
// CHECK-NEXT: "xtv.concatenate"(%[[Q]], %arg0) {axis = 1 : i64}
// ANY-LABEL: @gather
// ANY: "xt.all_gather"
// OTHER-LABEL: @gather
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @gather(%x: tensor<16x64xf16>) -> tensor<16x128xf16> {
    %y = "xt.all_gather"(%x) {axes = ["tp"], dim = 1 : i64, ranks = 2 : i64} : (tensor<16x64xf16>) -> tensor<16x128xf16>
    return %y : tensor<16x128xf16>
  }
}

// -----
// More ranks, and other combinations, stay.
// CHECK-LABEL: @others
// CHECK: "xt.all_reduce"(%arg0) {axes = ["dp"], combine = "add"}
// CHECK: "xt.all_reduce"(%arg0) {axes = ["tp"], combine = "max"}
// ANY-LABEL: @others
// OTHER-LABEL: @others
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @others(%x: tensor<16xf16>) -> (tensor<16xf16>, tensor<16xf16>) {
    %y = "xt.all_reduce"(%x) {axes = ["dp"], combine = "add"} : (tensor<16xf16>) -> tensor<16xf16>
    %z = "xt.all_reduce"(%x) {axes = ["tp"], combine = "max"} : (tensor<16xf16>) -> tensor<16xf16>
    return %y, %z : tensor<16xf16>, tensor<16xf16>
  }
}

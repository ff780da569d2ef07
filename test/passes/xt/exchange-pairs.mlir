// Sums and gathers among two ranks are an exchange and arithmetic.
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs{rank=1}' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s --check-prefix=ANY
// RUN: %xcc_opt %s --pass-pipeline='exchange-pairs{rank=1}' --target=amdgcn --chip=gfx942 --split-input-file | filecheck %s --check-prefix=OTHER

// CHECK-LABEL: @sum
// CHECK: %[[Q:.*]] = "xt.permute"(%arg0) {axes = ["tp"], pairs = [0, 1, 1, 0]}
// CHECK-NEXT: %[[S:.*]] = "xt.add"(%arg0, %[[Q]])
// CHECK-NEXT: "xt.add"(%[[S]], %arg1)
// ANY-LABEL: @sum
// ANY: "xt.permute"
// OTHER-LABEL: @sum
// OTHER: "xt.all_reduce"
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @sum(%p: tensor<16x64xf16>, %x: tensor<16x64xf16>) -> tensor<16x64xf16> {
    %s = "xt.all_reduce"(%p) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %y = "xt.add"(%s, %x) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
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

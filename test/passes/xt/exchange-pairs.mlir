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
// What is added to a sum one of the two adds to its part, of products that take less than sending them, in turns: the
// second place to the second such sum. Not to that of a long product, nor what is made behind.
// CHECK-LABEL: @added
// CHECK: %[[A:.*]] = "xt.dot_general"(%arg0
// CHECK-NEXT: %[[P:.*]] = "xt.permute"(%[[A]])
// CHECK-NEXT: %[[S:.*]] = "xt.add"(%[[A]], %[[P]])
// CHECK-NEXT: %[[B:.*]] = "xt.dot_general"
// CHECK-NEXT: %[[T:.*]] = "xt.add"(%[[B]], %[[S]])
// CHECK-NEXT: %[[Q:.*]] = "xt.permute"(%[[T]])
// CHECK-NEXT: %[[U:.*]] = "xt.add"(%[[T]], %[[Q]])
// CHECK-NEXT: %[[C:.*]] = "xt.dot_general"
// CHECK-NEXT: %[[R:.*]] = "xt.permute"(%[[C]])
// CHECK-NEXT: %[[V:.*]] = "xt.add"(%[[C]], %[[R]])
// CHECK-NEXT: %[[W:.*]] = "xt.add"(%[[V]], %[[U]])
// CHECK-NEXT: %[[D:.*]] = "xt.dot_general"
// CHECK-NEXT: %[[O:.*]] = "xt.permute"(%[[D]])
// CHECK-NEXT: %[[X:.*]] = "xt.add"(%[[D]], %[[O]])
// CHECK-NEXT: %[[L:.*]] = "xt.exp"(%[[W]])
// CHECK-NEXT: "xt.add"(%[[X]], %[[L]])
// ANY-LABEL: @added
// OTHER-LABEL: @added
module attributes {xt.mesh = [["dp", 3], ["tp", 2]]} {
  func.func @added(%x: tensor<16x8xf16>, %w: tensor<8x64xf16>, %r: tensor<16x64xf16>, %l: tensor<16x8192xf16>, %m: tensor<8192x64xf16>) -> tensor<16x64xf16> {
    %a = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x8xf16>, tensor<8x64xf16>) -> tensor<16x64xf16>
    %s = "xt.all_reduce"(%a) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %s1 = "xt.add"(%s, %r) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    %b = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x8xf16>, tensor<8x64xf16>) -> tensor<16x64xf16>
    %t = "xt.all_reduce"(%b) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %t1 = "xt.add"(%s1, %t) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    %c = "xt.dot_general"(%l, %m) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x8192xf16>, tensor<8192x64xf16>) -> tensor<16x64xf16>
    %u = "xt.all_reduce"(%c) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %u1 = "xt.add"(%u, %t1) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
    %d = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x8xf16>, tensor<8x64xf16>) -> tensor<16x64xf16>
    %v = "xt.all_reduce"(%d) {axes = ["tp"], combine = "add"} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %e = "xt.exp"(%u1) : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %y = "xt.add"(%v, %e) : (tensor<16x64xf16>, tensor<16x64xf16>) -> tensor<16x64xf16>
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

// A result that another rank gets is one more result of its kernel.
// RUN: %xcc_opt %s --pass-pipeline='push-results' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]]:2 = "xtv.dispatch"(%arg0) {kernel = @k_sent, symbols = []}
// CHECK-NEXT: %[[V:.*]] = "xt.reshape"(%[[P]]#0) {shape = [64, 16]}
// CHECK-NEXT: %[[Q:.*]] = "xt.permute"(%[[V]])
// CHECK: "xtv.dispatch"(%[[P]]#1, %[[Q]]) {kernel = @l
// CHECK-NOT: @k(
// CHECK: func.func private @k_sent(%{{.*}}) -> (tensor<16x64xf16>, tensor<16x64xf16>)
// CHECK: return %[[Y:.*]], %[[Y]] :
module attributes {xt.mesh = [["tp", 2]]} {
  func.func @main(%x: tensor<16x64xf16>) -> tensor<64x16xf16> {
    %p = "xtv.dispatch"(%x) {kernel = @k, symbols = []} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %v = "xt.reshape"(%p) {shape = [64, 16]} : (tensor<16x64xf16>) -> tensor<64x16xf16>
    %q = "xt.permute"(%v) {axes = ["tp"], pairs = [0, 1, 1, 0]} : (tensor<64x16xf16>) -> tensor<64x16xf16>
    %y = "xtv.dispatch"(%p, %q) {kernel = @l, symbols = []} : (tensor<16x64xf16>, tensor<64x16xf16>) -> tensor<64x16xf16>
    return %y : tensor<64x16xf16>
  }
  func.func private @k(%x: tensor<16x64xf16>) -> tensor<16x64xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.exp"(%x) : (tensor<16x64xf16>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
  func.func private @l(%p: tensor<16x64xf16>, %q: tensor<64x16xf16>) -> tensor<64x16xf16> attributes {xt.kernel, xt.symbols = []} {
    %v = "xt.reshape"(%p) {shape = [64, 16]} : (tensor<16x64xf16>) -> tensor<64x16xf16>
    %y = "xt.add"(%v, %q) : (tensor<64x16xf16>, tensor<64x16xf16>) -> tensor<64x16xf16>
    return %y : tensor<64x16xf16>
  }
}

// -----
// What is only sent has a place of its own already; kernels that update memory read it again; a stage of a pipeline is
// sent one way.
// CHECK-LABEL: func.func @main
// CHECK: "xtv.dispatch"(%arg0) {kernel = @k, symbols = []}
// CHECK: "xtv.dispatch"(%arg0) {kernel = @sorted, symbols = []}
// CHECK: "xtv.dispatch"(%arg0) {kernel = @k, symbols = []}
module attributes {xt.mesh = [["tp", 2]]} {
  func.func @main(%x: tensor<16x64xf16>) -> (tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>) {
    %a = "xtv.dispatch"(%x) {kernel = @k, symbols = []} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %b = "xt.permute"(%a) {axes = ["tp"], pairs = [0, 1, 1, 0]} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %c = "xtv.dispatch"(%x) {kernel = @sorted, symbols = []} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %d = "xt.permute"(%c) {axes = ["tp"], pairs = [0, 1, 1, 0]} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %e = "xtv.dispatch"(%x) {kernel = @k, symbols = []} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    %f = "xt.permute"(%e) {axes = ["tp"], pairs = [0, 1]} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    return %b, %c, %d, %e, %f : tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>
  }
  func.func private @k(%x: tensor<16x64xf16>) -> tensor<16x64xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.exp"(%x) : (tensor<16x64xf16>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
  func.func private @sorted(%x: tensor<16x64xf16>) -> tensor<16x64xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.cumulative"(%x) {axis = 1 : i64, kind = "sum", exclusive = false, reverse = false} : (tensor<16x64xf16>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
}

// The kernel that makes a part of a concatenation stores it there.
// RUN: %xcc_opt %s --pass-pipeline='place-parts' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]]:2 = "xtv.dispatch"(%arg0) {kernel = @k_placed1_1_0_1024, symbols = ["n"]}
// CHECK-SAME: -> (tensor<?x2048xf16, ["n", 2048]>, tensor<?x3072xf16, ["n", 3072]>)
// CHECK: "xtv.dispatch"(%[[P]]#1, %arg1) {kernel = @join_rest1, symbols = ["n"], xt.in_place}
// CHECK-NOT: @k(
// CHECK-NOT: @join(
module {
  func.func @main(%x: tensor<?x2048xf16, ["n", 2048]>, %b: tensor<?x1024xf16, ["n", 1024]>) -> (tensor<?x2048xf16, ["n", 2048]>, tensor<?x3072xf16, ["n", 3072]>) {
    %a:2 = "xtv.dispatch"(%x) {kernel = @k, symbols = ["n"]} : (tensor<?x2048xf16, ["n", 2048]>) -> (tensor<?x2048xf16, ["n", 2048]>, tensor<?x2048xf16, ["n", 2048]>)
    %y = "xtv.dispatch"(%a#1, %b) {kernel = @join, symbols = ["n"]} : (tensor<?x2048xf16, ["n", 2048]>, tensor<?x1024xf16, ["n", 1024]>) -> tensor<?x3072xf16, ["n", 3072]>
    return %a#0, %y : tensor<?x2048xf16, ["n", 2048]>, tensor<?x3072xf16, ["n", 3072]>
  }
  func.func private @k(%x: tensor<?x2048xf16, ["d0", 2048]>) -> (tensor<?x2048xf16, ["d0", 2048]>, tensor<?x2048xf16, ["d0", 2048]>) attributes {xt.kernel, xt.symbols = ["d0"]} {
    %y = "xt.exp"(%x) : (tensor<?x2048xf16, ["d0", 2048]>) -> tensor<?x2048xf16, ["d0", 2048]>
    %z = "xt.neg"(%x) : (tensor<?x2048xf16, ["d0", 2048]>) -> tensor<?x2048xf16, ["d0", 2048]>
    return %y, %z : tensor<?x2048xf16, ["d0", 2048]>, tensor<?x2048xf16, ["d0", 2048]>
  }
  func.func private @join(%a: tensor<?x2048xf16, ["d0", 2048]>, %b: tensor<?x1024xf16, ["d0", 1024]>) -> tensor<?x3072xf16, ["d0", 3072]> attributes {xt.kernel, xt.symbols = ["d0"]} {
    %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<?x2048xf16, ["d0", 2048]>, tensor<?x1024xf16, ["d0", 1024]>) -> tensor<?x3072xf16, ["d0", 3072]>
    return %y : tensor<?x3072xf16, ["d0", 3072]>
  }
}

// -----
// The larger one of two; not what two read, what a loop makes, or what is memory of @main's; no lines that are cut; no
// dims that a kernel walks as one.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = "xtv.dispatch"(%arg0) {kernel = @wide_placed0_1_64_64, symbols = []}
// CHECK: "xtv.dispatch"(%[[B]], %{{.*}}) {kernel = @join_rest0, symbols = [], xt.in_place}
// CHECK: "xtv.dispatch"(%{{.*}}, %{{.*}}) {kernel = @join, symbols = []}
// CHECK: "xtv.dispatch"(%{{.*}}, %{{.*}}) {kernel = @join, symbols = []}
// CHECK: "xtv.dispatch"(%{{.*}}, %{{.*}}) {kernel = @cut, symbols = []}
// CHECK: "xtv.dispatch"(%{{.*}}, %{{.*}}) {kernel = @middle, symbols = []}
// CHECK: func.func private @wide_placed0_1_64_64(%{{.*}}) -> tensor<8x192xf16>
// CHECK: %[[Y:.*]] = "xt.exp"
// CHECK: %[[I:.*]] = "xt.constant"() {value = dense<64> : tensor<i64>}
// CHECK: "xt.dynamic_update_slice"(%{{.*}}, %[[Y]], %{{.*}}, %[[I]]) {xt.in_place}
// CHECK: func.func private @join_rest0(%[[A0:.*]]: tensor<8x192xf16>, %[[A1:.*]]: tensor<8x64xf16>)
// CHECK: "xt.dynamic_update_slice"(%[[A0]], %[[A1]], %{{.*}}, %{{.*}}) {xt.in_place}
module {
  func.func @main(%x: tensor<8x128xf16>, %z: tensor<8x64xf16>, %v: tensor<2x4x32xf16>) -> (tensor<8x192xf16>, tensor<8x192xf16>, tensor<8x192xf16>, tensor<8x100xf16>, tensor<2x8x32xf16>, tensor<8x128xf16>) {
    %a = "xtv.dispatch"(%z) {kernel = @narrow, symbols = []} : (tensor<8x64xf16>) -> tensor<8x64xf16>
    %b = "xtv.dispatch"(%x) {kernel = @wide, symbols = []} : (tensor<8x128xf16>) -> tensor<8x128xf16>
    %0 = "xtv.dispatch"(%a, %b) {kernel = @join, symbols = []} : (tensor<8x64xf16>, tensor<8x128xf16>) -> tensor<8x192xf16>
    %c = "xtv.dispatch"(%x) {kernel = @wide, symbols = []} : (tensor<8x128xf16>) -> tensor<8x128xf16>
    %1 = "xtv.dispatch"(%z, %c) {kernel = @join, symbols = []} : (tensor<8x64xf16>, tensor<8x128xf16>) -> tensor<8x192xf16>
    %d = "xtv.dispatch"(%x) {kernel = @sorted, symbols = []} : (tensor<8x128xf16>) -> tensor<8x128xf16>
    %2 = "xtv.dispatch"(%z, %d) {kernel = @join, symbols = []} : (tensor<8x64xf16>, tensor<8x128xf16>) -> tensor<8x192xf16>
    %e = "xtv.dispatch"(%z) {kernel = @narrow, symbols = []} : (tensor<8x64xf16>) -> tensor<8x64xf16>
    %f = "xtv.dispatch"(%z) {kernel = @few, symbols = []} : (tensor<8x64xf16>) -> tensor<8x36xf16>
    %3 = "xtv.dispatch"(%e, %f) {kernel = @cut, symbols = []} : (tensor<8x64xf16>, tensor<8x36xf16>) -> tensor<8x100xf16>
    %g = "xtv.dispatch"(%v) {kernel = @rows, symbols = []} : (tensor<2x4x32xf16>) -> tensor<2x4x32xf16>
    %4 = "xtv.dispatch"(%g, %v) {kernel = @middle, symbols = []} : (tensor<2x4x32xf16>, tensor<2x4x32xf16>) -> tensor<2x8x32xf16>
    return %0, %1, %2, %3, %4, %c : tensor<8x192xf16>, tensor<8x192xf16>, tensor<8x192xf16>, tensor<8x100xf16>, tensor<2x8x32xf16>, tensor<8x128xf16>
  }
  func.func private @narrow(%x: tensor<8x64xf16>) -> tensor<8x64xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.exp"(%x) : (tensor<8x64xf16>) -> tensor<8x64xf16>
    return %y : tensor<8x64xf16>
  }
  func.func private @wide(%x: tensor<8x128xf16>) -> tensor<8x128xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.exp"(%x) : (tensor<8x128xf16>) -> tensor<8x128xf16>
    return %y : tensor<8x128xf16>
  }
  func.func private @few(%x: tensor<8x64xf16>) -> tensor<8x36xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.slice"(%x) {limits = [8, 36], starts = [0, 0], strides = [1, 1]} : (tensor<8x64xf16>) -> tensor<8x36xf16>
    return %y : tensor<8x36xf16>
  }
  func.func private @rows(%x: tensor<2x4x32xf16>) -> tensor<2x4x32xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.exp"(%x) : (tensor<2x4x32xf16>) -> tensor<2x4x32xf16>
    return %y : tensor<2x4x32xf16>
  }
  func.func private @sorted(%x: tensor<8x128xf16>) -> tensor<8x128xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xt.cumulative"(%x) {axis = 1 : i64, kind = "sum", exclusive = false, reverse = false} : (tensor<8x128xf16>) -> tensor<8x128xf16>
    return %y : tensor<8x128xf16>
  }
  func.func private @join(%a: tensor<8x64xf16>, %b: tensor<8x128xf16>) -> tensor<8x192xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<8x64xf16>, tensor<8x128xf16>) -> tensor<8x192xf16>
    return %y : tensor<8x192xf16>
  }
  func.func private @cut(%a: tensor<8x64xf16>, %b: tensor<8x36xf16>) -> tensor<8x100xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<8x64xf16>, tensor<8x36xf16>) -> tensor<8x100xf16>
    return %y : tensor<8x100xf16>
  }
  func.func private @middle(%a: tensor<2x4x32xf16>, %b: tensor<2x4x32xf16>) -> tensor<2x8x32xf16> attributes {xt.kernel, xt.symbols = []} {
    %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<2x4x32xf16>, tensor<2x4x32xf16>) -> tensor<2x8x32xf16>
    return %y : tensor<2x8x32xf16>
  }
}

// -----
// Rows whose sizes only a run compares stay apart: the second part's may not be those of the whole.
// CHECK-LABEL: func.func @main
// CHECK: "xtv.dispatch"(%{{.*}}) {kernel = @wide, symbols = ["n"]}
// CHECK: "xtv.dispatch"(%{{.*}}, %{{.*}}) {kernel = @join, symbols = ["n", "m"]}
module attributes {xcc.stage = "kernels", xt.equal = [["n", "m"]]} {
  func.func @main(%x: tensor<?x128xf16, ["n", 128]> {xt.name = "x"}, %b: tensor<?x64xf16, ["m", 64]> {xt.name = "b"})
      -> (tensor<?x192xf16, ["n", 192]> {xt.name = "y"}) {
    %a = "xtv.dispatch"(%x) {kernel = @wide, symbols = ["n"]} : (tensor<?x128xf16, ["n", 128]>) -> tensor<?x128xf16, ["n", 128]>
    %0 = "xtv.dispatch"(%a, %b) {kernel = @join, symbols = ["n", "m"]} : (tensor<?x128xf16, ["n", 128]>, tensor<?x64xf16, ["m", 64]>) -> tensor<?x192xf16, ["n", 192]>
    return %0 : tensor<?x192xf16, ["n", 192]>
  }
  func.func private @wide(%x: tensor<?x128xf16, ["d0", 128]>) -> tensor<?x128xf16, ["d0", 128]> attributes {xt.kernel, xt.symbols = ["d0"]} {
    %y = "xt.exp"(%x) : (tensor<?x128xf16, ["d0", 128]>) -> tensor<?x128xf16, ["d0", 128]>
    return %y : tensor<?x128xf16, ["d0", 128]>
  }
  func.func private @join(%a: tensor<?x128xf16, ["d0", 128]>, %b: tensor<?x64xf16, ["d1", 64]>) -> tensor<?x192xf16, ["d0", 192]> attributes {xt.kernel, xt.symbols = ["d0", "d1"]} {
    %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<?x128xf16, ["d0", 128]>, tensor<?x64xf16, ["d1", 64]>) -> tensor<?x192xf16, ["d0", 192]>
    return %y : tensor<?x192xf16, ["d0", 192]>
  }
}

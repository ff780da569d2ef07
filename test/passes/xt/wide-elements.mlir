// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline=wide-elements --split-input-file | filecheck %s
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = "xt.reshape"(%arg0) {shape = [9, "n", 4]}
// CHECK: %[[W:.*]] = "xt.bitcast"(%[[R]]) {dtype = i32}
// CHECK: %[[D:.*]] = "xtv.dispatch"(%[[W]]) {kernel = @t_wide, symbols = ["n"]}
// CHECK: %[[B:.*]] = "xt.bitcast"(%[[D]]) {dtype = ui8}
// CHECK: %[[Y:.*]] = "xt.reshape"(%[[B]])
// CHECK: return %[[Y]] : tensor<?x9x2x2xui8
func.func @main(%x: tensor<9x?x2x2xui8, [9, "n", 2, 2]>) -> tensor<?x9x2x2xui8, ["n", 9, 2, 2]> {
  %0 = "xtv.dispatch"(%x) {kernel = @t, symbols = ["n"]} : (tensor<9x?x2x2xui8, [9, "n", 2, 2]>) -> tensor<?x9x2x2xui8, ["n", 9, 2, 2]>
  return %0 : tensor<?x9x2x2xui8, ["n", 9, 2, 2]>
}
// CHECK-NOT: @t(
// CHECK: func.func private @t_wide(%[[X:.*]]: tensor<9x?xi32, [9, "d0"]>)
// CHECK: "xt.transpose"(%[[X]]) {perm = [1, 0]}
func.func private @t(%x: tensor<9x?x2x2xui8, [9, "d0", 2, 2]>) -> tensor<?x9x2x2xui8, ["d0", 9, 2, 2]> attributes {xt.kernel, xt.symbols = ["d0"]} {
  %0 = "xt.transpose"(%x) {perm = [1, 0, 2, 3]} : (tensor<9x?x2x2xui8, [9, "d0", 2, 2]>) -> tensor<?x9x2x2xui8, ["d0", 9, 2, 2]>
  return %0 : tensor<?x9x2x2xui8, ["d0", 9, 2, 2]>
}

// -----

// 3 bytes are no word, and 16 are vectors of their own; what a transpose is fused with reads elements.
// CHECK-LABEL: func.func @main
// CHECK-NOT: xt.bitcast
func.func @main(%x: tensor<9x8x3xi8>, %y: tensor<9x8x4xf32>, %z: tensor<9x8x2xf32>) -> (tensor<8x9x3xi8>, tensor<8x9x4xf32>, tensor<8x9x2xf32>) {
  %0 = "xtv.dispatch"(%x) {kernel = @three, symbols = []} : (tensor<9x8x3xi8>) -> tensor<8x9x3xi8>
  %1 = "xtv.dispatch"(%y) {kernel = @long, symbols = []} : (tensor<9x8x4xf32>) -> tensor<8x9x4xf32>
  %2 = "xtv.dispatch"(%z) {kernel = @fused, symbols = []} : (tensor<9x8x2xf32>) -> tensor<8x9x2xf32>
  return %0, %1, %2 : tensor<8x9x3xi8>, tensor<8x9x4xf32>, tensor<8x9x2xf32>
}
func.func private @three(%x: tensor<9x8x3xi8>) -> tensor<8x9x3xi8> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<9x8x3xi8>) -> tensor<8x9x3xi8>
  return %0 : tensor<8x9x3xi8>
}
func.func private @long(%x: tensor<9x8x4xf32>) -> tensor<8x9x4xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<9x8x4xf32>) -> tensor<8x9x4xf32>
  return %0 : tensor<8x9x4xf32>
}
func.func private @fused(%x: tensor<9x8x2xf32>) -> tensor<8x9x2xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<9x8x2xf32>) -> tensor<8x9x2xf32>
  %1 = "xt.neg"(%0) : (tensor<8x9x2xf32>) -> tensor<8x9x2xf32>
  return %1 : tensor<8x9x2xf32>
}

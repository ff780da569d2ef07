// RUN: %xcc_opt %s --target=cpu --chip=znver5,cores=2 --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure" --split-input-file | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver5,cores=16 --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure" --split-input-file | filecheck %s --check-prefix=MANY

// Both sums walk an image, which every chunk of it would make again: chunks are whole images.
// CHECK-LABEL: func.func private @images
// CHECK-SAME: block = array<i64: 1, 0, 0>
func.func private @images(%x: tensor<64x256x256xf32>, %w: tensor<256xf32>) -> tensor<64x256x256xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %s = "xt.reduce"(%x) {axes = [1, 2], keepdims = true, kind = "sum"} : (tensor<64x256x256xf32>) -> tensor<64x1x1xf32>
  %d = "xt.sub"(%x, %s) : (tensor<64x256x256xf32>, tensor<64x1x1xf32>) -> tensor<64x256x256xf32>
  %q = "xt.mul"(%d, %d) : (tensor<64x256x256xf32>, tensor<64x256x256xf32>) -> tensor<64x256x256xf32>
  %t = "xt.reduce"(%q) {axes = [1, 2], keepdims = true, kind = "sum"} : (tensor<64x256x256xf32>) -> tensor<64x1x1xf32>
  %n = "xt.div"(%d, %t) : (tensor<64x256x256xf32>, tensor<64x1x1xf32>) -> tensor<64x256x256xf32>
  %y = "xt.mul"(%n, %w) : (tensor<64x256x256xf32>, tensor<256xf32>) -> tensor<64x256x256xf32>
  return %y : tensor<64x256x256xf32>
}

// -----
// One image, whose exponentials take longer than its maximum and sum: as many chunks as cores.
// Exponentials wait in no row, since the sum is over several.
// CHECK-LABEL: func.func private @image
// CHECK-SAME: block = array<i64: 128, 0>
// CHECK-NOT: park
// CHECK: return
// MANY-LABEL: func.func private @image(
// MANY-SAME: block = array<i64: 16, 0>
func.func private @image(%x: tensor<1x256x256xf32>, %w: tensor<256xf32>) -> tensor<1x256x256xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %m = "xt.reduce"(%x) {axes = [1, 2], keepdims = true, kind = "max"} : (tensor<1x256x256xf32>) -> tensor<1x1x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<1x256x256xf32>, tensor<1x1x1xf32>) -> tensor<1x256x256xf32>
  %e = "xt.exp"(%d) : (tensor<1x256x256xf32>) -> tensor<1x256x256xf32>
  %s = "xt.reduce"(%e) {axes = [1, 2], keepdims = true, kind = "sum"} : (tensor<1x256x256xf32>) -> tensor<1x1x1xf32>
  %n = "xt.div"(%e, %s) : (tensor<1x256x256xf32>, tensor<1x1x1xf32>) -> tensor<1x256x256xf32>
  %y = "xt.mul"(%n, %w) : (tensor<1x256x256xf32>, tensor<256xf32>) -> tensor<1x256x256xf32>
  return %y : tensor<1x256x256xf32>
}

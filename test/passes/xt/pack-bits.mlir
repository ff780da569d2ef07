// RUN: %xcc_opt %s --pass-pipeline="pack-bits, form-kernels{prologue=widen}, xt-to-linalg, mlir(canonicalize, cse)" --split-input-file | filecheck %s

// The bytes are an operand of the product's kernel, which decodes what it multiplies.
// CHECK-LABEL: func.func @main
// CHECK: name = "w.bytes"} : () -> tensor<32x48xui8>
// CHECK: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: func.func private @dot_general_0
// CHECK-SAME: tensor<32x48xi8>
// CHECK: arith.shli
// CHECK: arith.shrsi
// CHECK: arith.sitofp
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @main(%x: tensor<7x64xf32>) -> tensor<7x48xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<64x48xi4>
  %s = "xt.weight"() {name = "s"} : () -> tensor<48xf32>
  %f = "xt.convert"(%w) {dtype = f32, saturate = false} : (tensor<64x48xi4>) -> tensor<64x48xf32>
  %d = "xt.mul"(%f, %s) : (tensor<64x48xf32>, tensor<48xf32>) -> tensor<64x48xf32>
  %y = "xt.dot_general"(%x, %d) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<7x64xf32>, tensor<64x48xf32>) -> tensor<7x48xf32>
  return %y : tensor<7x48xf32>
}

// -----
// Odd sizes: along the dim that leaves least of its last byte; one row of numbers shares bytes along the row, as do rows
// of which others leave over more than a quarter, but not five of them, though the row would leave over nothing.
// CHECK: name = "odd.bytes"} : () -> tensor<17x21xui8>
// CHECK: name = "row.bytes"} : () -> tensor<1x5xui8>
// CHECK: name = "bits.bytes"} : () -> tensor<9x2xui8>
// CHECK: name = "five.bytes"} : () -> tensor<5x3x16xui8>
// CHECK: name = "three.bytes"} : () -> tensor<3x8xui8>
func.func @sizes() -> (tensor<33x21xui4>, tensor<1x9xf4E2M1FN>, tensor<33x2xi2>, tensor<5x5x16xui4>, tensor<3x16xui4>) {
  %a = "xt.weight"() {name = "odd"} : () -> tensor<33x21xui4>
  %b = "xt.weight"() {name = "row"} : () -> tensor<1x9xf4E2M1FN>
  %c = "xt.weight"() {name = "bits"} : () -> tensor<33x2xi2>
  %d = "xt.weight"() {name = "five"} : () -> tensor<5x5x16xui4>
  %e = "xt.weight"() {name = "three"} : () -> tensor<3x16xui4>
  return %a, %b, %c, %d, %e
      : tensor<33x21xui4>, tensor<1x9xf4E2M1FN>, tensor<33x2xi2>, tensor<5x5x16xui4>, tensor<3x16xui4>
}

// -----
// Lanes walk the groups of a panel's columns, not the four numbers of a group: steps of groups share bytes.
// CHECK: name = "groups.bytes"} : () -> tensor<2x3x4x16x4xui8>
func.func @groups() -> tensor<2x3x8x16x4xui4> {
  %a = "xt.weight"() {name = "groups"} : () -> tensor<2x3x8x16x4xui4>
  return %a : tensor<2x3x8x16x4xui4>
}

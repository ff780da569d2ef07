// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// A kept unit dim is in no generic, and not in the result.
// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func private @keepdims
// CHECK-SAME: %[[X:.*]]: tensor<?x7xf16>, %[[D0:.*]]: index) -> tensor<?xf16>
// CHECK-SAME: xt.arg_dims = {{\[\[}}"d0", 7]], xt.kernel, xt.result_dims = {{\[\[}}"d0"]], xt.symbols = ["d0"]
func.func private @keepdims(%x: tensor<?x7xf16, ["d0", 7]>) -> tensor<?x1xf16, ["d0", 1]>
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: %[[EMPTY:.*]] = tensor.empty(%[[D0]]) : tensor<?xf32>
  // CHECK: %[[INIT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]]
  // CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
  // CHECK-SAME: ins(%[[X]] : tensor<?x7xf16>) outs(%[[INIT]] : tensor<?xf32>)
  // CHECK: arith.extf
  // CHECK: arith.addf
  // CHECK: arith.truncf
  // CHECK-NOT: linalg.generic
  // CHECK: return
  %0 = "xt.reduce"(%x) {kind = "sum", axes = [1], keepdims = true} : (tensor<?x7xf16, ["d0", 7]>) -> tensor<?x1xf16, ["d0", 1]>
  return %0 : tensor<?x1xf16, ["d0", 1]>
}

// RUN: %xcc_opt %s --split-input-file --verify-diagnostics

// expected-error: result type is f32[3] but f32[2] follows from its operands
func.func @wrong_type(%x: tensor<2xf32>) -> tensor<3xf32> {
  %y = "xt.neg"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----
// expected-error: cannot broadcast [2] with [3]
func.func @shapes(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %z = "xt.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %z : tensor<3xf32>
}

// -----
// expected-error: 'xtv.concatenate' op result type is f32[3] but f32[4] follows from its operands
func.func @lists(%x: tensor<2xf32>) -> tensor<3xf32> {
  %y = "xtv.concatenate"(%x, %x) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----
// expected-error: 'xtv.join' op is no op of the dialect
func.func @unknown(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = "xtv.join"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// expected-error: 'xt.transpose' op needs the attribute perm
func.func @missing(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %y = "xt.transpose"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----
// expected-error: 'xt.all_reduce' op stands in a module without xt.mesh
func.func @no_mesh(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = "xt.all_reduce"(%x) {axes = ["tp"], combine = "add"} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----
// expected-error: axes dp: the mesh has tp, each may be named once
module attributes {xt.mesh = [["tp", 2]]} {
  func.func @no_axis(%x: tensor<2xf32>) -> tensor<4xf32> {
    %y = "xt.all_gather"(%x) {axes = ["dp"], dim = 0 : i64, ranks = 2 : i64} : (tensor<2xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

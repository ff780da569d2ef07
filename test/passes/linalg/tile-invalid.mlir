// RUN: %xcc_opt %s --pass-pipeline=tile --split-input-file --verify-diagnostics

// expected-error: block 10 is not a multiple of vector 4
#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<64xf32>) -> tensor<64xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64]], xt.result_dims = [[64]],
  xcc.config = {block = array<i64: 10>, vector = array<i64: 4>, order = array<i64: 0>, reduce = []}} {
  return %x : tensor<64xf32>
}

// -----

// expected-error: 0 reduce entries for 1 reductions
func.func private @k(%x: tensor<64xf32>) -> tensor<f32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64]], xt.result_dims = [[]],
  xcc.config = {block = array<i64>, vector = array<i64>, order = array<i64>, reduce = []}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<64xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

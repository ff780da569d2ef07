// RUN: %xcc_opt %s --pass-pipeline="configure{target=nvptx},stream-k" --target=nvptx --chip=sm_90a | filecheck %s

// Few results of a sum of unknown length: all cores add up runs of its steps.
// CHECK: xcc.streamed = array<i64: 1, 132>
func.func private @product(%x: tensor<?x64xf16>, %w: tensor<?x64xf16>, %d0: index) -> tensor<64x64xf32>
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 64], ["d0", 64]], xt.result_dims = [[64, 64]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf16>, tensor<?x64xf16>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// relu(x w), w in panels of 32 columns; everything that a product can have is wished for.
#m = affine_map<(m, n) -> (m, n)>
func.func private @k(%x: tensor<20x192xf32>, %w: tensor<2x192x32xf32>) -> tensor<20x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[20, 192], [2, 192, 32]], xt.result_dims = [[20, 64]],
    xcc.config = {block = array<i64: 8, 32>, vector = array<i64: 4, 32>, order = array<i64: 1, 0>,
                  chunks = array<i64: 0, 1>, reduce = [array<i64: 1>], parallel = true,
                  cpu = {depth = 64 : i64, staged = true, parts = 2 : i64, prefetch = 16 : i64, shares = 2 : i64,
                         stream = true}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x64xf32>) -> tensor<20x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x192xf32>, tensor<2x192x32xf32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<20x64xf32>
  %z = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<20x64xf32>) outs(%e : tensor<20x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  } -> tensor<20x64xf32>
  return %z : tensor<20x64xf32>
}

// softmax(x); everything that rows can have is wished for: maxima are kept, exponentials parked.
#m = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func private @k(%x: tensor<100x97xf32>) -> tensor<100x97xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[100, 97]], xt.result_dims = [[100, 97]],
    xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 1, 32>, order = array<i64: 0, 1>,
                  reduce = [array<i64: 32>, array<i64: 32>], parallel = true,
                  cpu = {kept = [{op = 0 : i64, vector = array<i64: 1>, order = array<i64: 0>}], park = 1 : i64,
                         ahead = 96 : i64, stream = true}}} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<100xf32>
  %e2 = tensor.empty() : tensor<100x97xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<100xf32>) -> tensor<100xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<100x97xf32>) outs(%f : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<100xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<100x97xf32>, tensor<100xf32>) outs(%e2 : tensor<100x97xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<100x97xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<100xf32>) -> tensor<100xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<100x97xf32>) outs(%g : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<100xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<100x97xf32>, tensor<100xf32>) outs(%e2 : tensor<100x97xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<100x97xf32>
  return %y : tensor<100x97xf32>
}

// RUN: %xcc_opt %s --pass-pipeline="peel-tails, tile" | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A chunk is one tile of rows: whole ones have no masks, the 4 rows that are left at the end are a tile of their own.
// CHECK-LABEL: func.func private @rows
// CHECK: scf.forall (%{{.*}}) = (0) to (20) step (8)
// CHECK-NOT: mask
// CHECK: math.fma {{.*}} : vector<8x32xf32>
// CHECK-NOT: mask
// CHECK: math.fma {{.*}} : vector<4x32xf32>
// CHECK-NOT: mask
func.func private @rows(%x: tensor<20x24xf32>, %w: tensor<24x32xf32>) -> tensor<20x32xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[20, 24], [24, 32]], xt.result_dims = [[20, 32]],
    xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 8, 32>, order = array<i64: 1, 0>,
                  chunks = array<i64: 0, 1>, reduce = [array<i64: 1>], tail = "peel", parallel = true}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x32xf32>) -> tensor<20x32xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x24xf32>, tensor<24x32xf32>) outs(%f : tensor<20x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x32xf32>
  return %y : tensor<20x32xf32>
}

// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="%loops, tile" | filecheck %s

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// The maxima of a chunk's rows come first, so that no row's exponentials wait for its own. The sum of a row that is one
// step begins with its elements, not with zeros that they are added to.
// CHECK-LABEL: func.func private @rows(
// CHECK: scf.forall
// CHECK: %[[KEPT:.*]] = memref.alloca() {{.*}}: memref<32xf32>
// CHECK: scf.for
// CHECK: %[[MAX:.*]] = vector.multi_reduction <maximumf>, %{{.*}}, %{{.*}} [0] : vector<128xf32> to f32
// CHECK: memref.store %[[MAX]], %[[KEPT]]
// CHECK: scf.for
// CHECK: memref.load %[[KEPT]]
// CHECK: %[[E:.*]] = math.exp %{{.*}} : vector<128xf32>
// CHECK-NOT: arith.addf
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %[[E]], %{{.*}} [0] : vector<128xf32> to f32
// CHECK-NOT: math.exp
func.func private @rows(%x: tensor<1536x128xf32>) -> tensor<1536x128xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1536, 128]], xt.result_dims = [[1536, 128]],
    xcc.config = {block = array<i64: 32, 0>, vector = array<i64: 1, 128>, order = array<i64: 0, 1>, reduce = [array<i64: 128>, array<i64: 128>], cpu = {kept = [{op = 0 : i64, vector = array<i64: 1>, order = array<i64: 0>}]}}} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1536xf32>
  %e2 = tensor.empty() : tensor<1536x128xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<1536xf32>) -> tensor<1536xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1536x128xf32>) outs(%f : tensor<1536xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1536xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<1536x128xf32>, tensor<1536xf32>) outs(%e2 : tensor<1536x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<1536x128xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1536xf32>) -> tensor<1536xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<1536x128xf32>) outs(%g : tensor<1536xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1536xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<1536x128xf32>, tensor<1536xf32>) outs(%e2 : tensor<1536x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1536x128xf32>
  return %y : tensor<1536x128xf32>
}

// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="tile" | filecheck %s

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// What is said of a row is stored where the row is, by the thread that has it.
// CHECK-LABEL: func.func private @with_rows(
// CHECK: scf.forall
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %{{.*}}, %{{.*}} [0] : vector<256xf32> to f32
// CHECK: memref.store %[[SUM]], %{{.*}}[%[[ROW]]] : memref<128xf32>
// CHECK: vector.transfer_write %{{.*}} : vector<256xf32>, memref<128x256xf32>
// CHECK: xcc.parallel
// CHECK-NOT: multi_reduction
func.func private @with_rows(%x: tensor<128x256xf32>) -> (tensor<128x256xf32>, tensor<128xf32>)
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[128, 256]], xt.result_dims = [[128, 256], [128]],
    xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 1, 256>, order = array<i64: 0, 1>, reduce = [array<i64: 256>], parallel = true}} {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<128xf32>
  %e2 = tensor.empty() : tensor<128x256xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x256xf32>) outs(%g : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<128x256xf32>, tensor<128xf32>) outs(%e2 : tensor<128x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<128x256xf32>
  return %y, %sum : tensor<128x256xf32>, tensor<128xf32>
}

// Where chunks cut the rows, each sum is made once, behind them: in a tile of some rows, not as many as a row has lanes.
// CHECK-LABEL: func.func private @cut_rows(
// CHECK: vector.transfer_write %{{.*}} : vector<256xf32>, memref<128x1024xf32>
// CHECK: vector.multi_reduction <add>, %{{.*}} : vector<16x16xf32> to vector<16xf32>
func.func private @cut_rows(%x: tensor<128x1024xf32>) -> (tensor<128x1024xf32>, tensor<128xf32>)
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[128, 1024]], xt.result_dims = [[128, 1024], [128]],
    xcc.config = {block = array<i64: 8, 256>, vector = array<i64: 1, 256>, order = array<i64: 0, 1>, reduce = [array<i64: 16>], parallel = true}} {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<128xf32>
  %e2 = tensor.empty() : tensor<128x1024xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x1024xf32>) outs(%g : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<128x1024xf32>) outs(%e2 : tensor<128x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<128x1024xf32>
  return %y, %sum : tensor<128x1024xf32>, tensor<128xf32>
}

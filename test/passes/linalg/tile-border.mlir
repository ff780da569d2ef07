// RUN: %xcc_opt %s --pass-pipeline="tile, mlir(canonicalize), mlir(cse)" --split-input-file | filecheck %s

// Rows of the image are walked as one dim of 35. The border is filled first; element i of the walk lies at
// (i + 2 * (i floordiv 7)) * 16 + 160: one division a tile, then counting.
// CHECK-LABEL: func.func private @padded(
// CHECK-SAME: %[[X:.*]]: memref<35x16xf32>, %[[OUT:.*]]: memref<7x9x16xf32>)
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[OUT]] {{.*}}sizes: [1008]
// CHECK: vector.transfer_write %cst{{.*}}, %[[FLAT]]
// CHECK: scf.forall (%[[I:.*]]) = (0) to (35) step (8)
// CHECK: arith.divui %{{.*}}, %c7
// CHECK-NOT: arith.divui %{{.*}}, %c7
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK: vector.transfer_write %{{.*}} : vector<16xf32>, memref<1008xf32
#m = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func private @padded(%x: tensor<5x7x16xf32>) -> tensor<7x9x16xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[5, 7, 16]], xt.result_dims = [[7, 9, 16]],
    xcc.config = {block = array<i64: 8, 16>, vector = array<i64: 4, 16>, order = array<i64: 0, 1>, reduce = []}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x7x16xf32>
  %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<5x7x16xf32>) outs(%e : tensor<5x7x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<5x7x16xf32>
  %p = tensor.pad %y low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<5x7x16xf32> to tensor<7x9x16xf32>
  return %p : tensor<7x9x16xf32>
}

// -----
// What is inserted into a larger buffer: tiles go to an offset, and nothing else is stored.
// CHECK-LABEL: func.func private @inserted(
// CHECK-SAME: %[[X:.*]]: memref<35x16xf32>, %[[WHOLE:.*]]: memref<5x7x48xf32>, %[[OUT:.*]]: memref<35x48xf32>)
// CHECK: scf.forall (%[[I:.*]]) = (0) to (35) step (8)
// CHECK-NOT: %[[WHOLE]]
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]][%{{.*}}, %c32]
// CHECK-NOT: vector.transfer_write %cst
// CHECK: return
#m = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func private @inserted(%x: tensor<5x7x16xf32>, %whole: tensor<5x7x48xf32>) -> tensor<5x7x48xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[5, 7, 16], [5, 7, 48]], xt.result_dims = [[5, 7, 48]],
    xcc.config = {block = array<i64: 8, 16>, vector = array<i64: 4, 16>, order = array<i64: 0, 1>, reduce = []}} {
  %e = tensor.empty() : tensor<5x7x16xf32>
  %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<5x7x16xf32>) outs(%e : tensor<5x7x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<5x7x16xf32>
  %p = tensor.insert_slice %y into %whole[0, 0, 32] [5, 7, 16] [1, 1, 1] : tensor<5x7x16xf32> into tensor<5x7x48xf32>
  return %p : tensor<5x7x48xf32>
}

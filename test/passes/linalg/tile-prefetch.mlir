// RUN: %xcc_opt %s --pass-pipeline="prefetch-panels, tile, mlir(canonicalize), mlir(cse)" | filecheck %s

// The row of the panel that is 64 steps ahead is asked for, a cache line at a time.
// CHECK-LABEL: func.func private @ahead(
// CHECK-SAME: %{{.*}}: memref<28x64xf32>, %[[W:.*]]: memref<2x64x32xf32>
// CHECK: scf.for %[[K:.*]] = %c0 to %c64 step %c1 iter_args
// CHECK: %[[ROW:.*]] = arith.addi %[[K]], %c64 : index
// CHECK: memref.prefetch %[[W]][%[[P:.*]], %[[ROW]], %c0], read, locality<3>, data
// CHECK: memref.prefetch %[[W]][%[[P]], %[[ROW]], %c16], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: math.fma
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func private @ahead(%x: tensor<28x64xf32>, %w: tensor<2x64x32xf32>) -> tensor<28x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[28, 64], [2, 64, 32]], xt.result_dims = [[28, 64]],
    xcc.config = {block = array<i64: 28, 32>, vector = array<i64: 14, 32>, order = array<i64: 1, 0>, reduce = [array<i64: 1>], cpu = {prefetch = 64 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<28x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<28x64xf32>) -> tensor<28x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<28x64xf32>, tensor<2x64x32xf32>) outs(%f : tensor<28x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<28x64xf32>
  return %y : tensor<28x64xf32>
}

// RUN: %xcc_opt %s --pass-pipeline="%loops, tile" --split-input-file | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// The rows of a chunk are copied for each block of steps, to one place, along the loops of the first panel's tiles: the
// first line ahead of the loop, and in it the line after the one that is read. The first block's sums are stored, the
// others' added to what is there, which comes a line at a time, and the last is followed by the rest of the kernel.
// CHECK-LABEL: func.func private @blocks
// CHECK-SAME: %[[X:.*]]: memref<20x192xf32>, %[[W:.*]]: memref<2x192x32xf32>, %[[OUT:.*]]: memref<20x64xf32>
// CHECK: scf.forall (%[[LOW:.*]]) =
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<8x80xf32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: scf.if %[[FIRST]]
// CHECK: vector.transfer_read %[[X]]
// CHECK: vector.transfer_write %{{.*}}, %[[ROWS]]
// CHECK: scf.for %[[LINE:.*]] = %c0 to %c64 step %c16 iter_args
// CHECK: scf.if %[[FIRST]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[LINE]], %c16
// CHECK: %[[TO:.*]] = arith.minsi %[[NEXT]], %c48
// CHECK-COUNT-4: vector.transfer_write %{{.*}}, %[[ROWS]]
// CHECK-COUNT-4: memref.prefetch %[[X]]{{.*}}, read, locality<2>
// CHECK: scf.for %{{.*}} = %[[LINE]] to %{{.*}} step %c1 iter_args
// CHECK: vector.transfer_read %[[ROWS]]
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]]
// CHECK-NOT: memref.alloca
// CHECK: vector.transfer_write %{{.*}}, %[[ROWS]]
// CHECK: scf.for %{{.*}} = %c64 to %c128 step %c16 iter_args
// CHECK: memref.prefetch %[[OUT]]{{.*}}, read, locality<3>
// CHECK: scf.for %{{.*}} step %c1 iter_args
// CHECK: %[[PRIOR:.*]] = vector.transfer_read %[[OUT]]
// CHECK: arith.addf %{{.*}}, %[[PRIOR]]
// CHECK-NOT: arith.maximumf
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]]
// CHECK: scf.for %{{.*}} = %c128 to %c192 step %c16 iter_args
// CHECK: %[[BEFORE:.*]] = vector.transfer_read %[[OUT]]
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[BEFORE]]
// CHECK: %[[Y:.*]] = arith.maximumf %[[SUM]]
// CHECK: vector.transfer_write %[[Y]], %[[OUT]]
func.func private @blocks(%x: tensor<20x192xf32>, %w: tensor<2x192x32xf32>) -> tensor<20x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[20, 192], [2, 192, 32]], xt.result_dims = [[20, 64]],
    xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 4, 32>, order = array<i64: 1, 0>,
                  chunks = array<i64: 0, 1>, reduce = [array<i64: 1>],
                  parallel = true, cpu = {depth = 64 : i64, staged = true}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x64xf32>) -> tensor<20x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x192xf32>, tensor<2x192x32xf32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]} ins(%y : tensor<20x64xf32>) outs(%e : tensor<20x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  } -> tensor<20x64xf32>
  return %z : tensor<20x64xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// Parts of the rows, of which each walks chunks of columns: all chunks for a block of steps, then all for the next.
// CHECK-LABEL: func.func private @parts
// CHECK-SAME: %[[X:.*]]: memref<20x192xf32>, %[[W:.*]]: memref<2x192x32xf32>, %[[OUT:.*]]: memref<20x64xf32>
// CHECK: scf.forall (%[[PART:.*]], %[[LEFT:.*]], %{{.*}}) = (0, 0, 0) to (2, 64, 2) step (1, 32, 1)
// CHECK: scf.for %{{.*}} = %c0 to %c96 step %c16 iter_args
// CHECK-NOT: vector.transfer_read %[[OUT]]
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]]
// CHECK: xcc.parallel
// CHECK: scf.forall
// CHECK: scf.for %{{.*}} = %c96 to %c192 step %c16 iter_args
// CHECK: %[[PRIOR:.*]] = vector.transfer_read %[[OUT]]
// CHECK: arith.addf %{{.*}}, %[[PRIOR]]
// CHECK: arith.maximumf
// CHECK: xcc.parallel
// CHECK-NOT: scf.forall
func.func private @parts(%x: tensor<20x192xf32>, %w: tensor<2x192x32xf32>) -> tensor<20x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[20, 192], [2, 192, 32]], xt.result_dims = [[20, 64]],
    xcc.config = {block = array<i64: 8, 32>, vector = array<i64: 4, 32>, order = array<i64: 1, 0>,
                  chunks = array<i64: 0, 1>, reduce = [array<i64: 1>],
                  parallel = true, cpu = {depth = 96 : i64, staged = true, parts = 2 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x64xf32>) -> tensor<20x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x192xf32>, tensor<2x192x32xf32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]} ins(%y : tensor<20x64xf32>) outs(%e : tensor<20x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  } -> tensor<20x64xf32>
  return %z : tensor<20x64xf32>
}

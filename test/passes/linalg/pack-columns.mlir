// RUN: %xcc_opt %s --pass-pipeline=pack-columns | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="peel-tails, pack-columns, prefetch-panels, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %s --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#t = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func private @rows
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.columns

// The chunk's first panel is copied ahead of its tiles, those behind it along the loops of the panel before.
// LOOPS-LABEL: func.func private @rows
// LOOPS: %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<2x64x32xf32>
// LOOPS: scf.if
// LOOPS: scf.for
// LOOPS: vector.transfer_write %{{.*}}, %[[PANELS]]
// LOOPS: memref.prefetch %arg1
// LOOPS: scf.for %{{.*}} step %c16
// LOOPS: scf.if
// LOOPS: vector.transfer_write %{{.*}}, %[[PANELS]]
// LOOPS: vector.transfer_read %[[PANELS]]
// LOOPS: math.fma

// PLAIN-LABEL: func.func private @rows
// PLAIN-NOT: memref.alloca
// PLAIN: math.fma
func.func private @rows(%x: tensor<20x64xf32>, %w: tensor<64x96xf32>) -> tensor<20x96xf32> attributes {xt.kernel,
    xt.symbols = [], xt.arg_dims = [[20, 64], [64, 96]], xt.result_dims = [[20, 96]],
    xcc.config = {block = array<i64: 0, 96>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
                  reduce = [array<i64: 1>], parallel = true, cpu = {columns = true, shares = 4 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x96xf32>) -> tensor<20x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x64xf32>, tensor<64x96xf32>) outs(%f : tensor<20x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x96xf32>
  return %y : tensor<20x96xf32>
}

// Columns that lie along the sum are turned in tiles, ahead of their rows; the lines of those behind are asked for.
// LOOPS-LABEL: func.func private @turned
// LOOPS: %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<1x64x32xf32>
// LOOPS-NOT: scf.if
// LOOPS: scf.for
// LOOPS: %[[TILE:.*]] = vector.transfer_read %arg1{{.*}} vector<16x16xf32>
// LOOPS: vector.transpose
// LOOPS: vector.transfer_write %{{.*}}, %[[PANEL]]
// LOOPS: scf.for %{{.*}} step %c16
// LOOPS-COUNT-8: memref.prefetch %arg1
// LOOPS: vector.transfer_read %[[PANEL]]
// LOOPS: math.fma
func.func private @turned(%x: tensor<20x64xf32>, %w: tensor<96x64xf32>) -> tensor<20x96xf32> attributes {xt.kernel,
    xt.symbols = [], xt.arg_dims = [[20, 64], [96, 64]], xt.result_dims = [[20, 96]],
    xcc.config = {block = array<i64: 0, 96>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
                  reduce = [array<i64: 1>], parallel = true, cpu = {columns = true, shares = 4 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x96xf32>) -> tensor<20x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #t, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x64xf32>, tensor<96x64xf32>) outs(%f : tensor<20x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x96xf32>
  return %y : tensor<20x96xf32>
}

// So many steps as are not known: a panel has room for 4096, and longer sums read the operand as it lies. Those behind
// the last 16 that are turned together are copied one by one.
// LOOPS-LABEL: func.func private @free
// LOOPS: %[[FITS:.*]] = arith.cmpi slt, %arg3, %c4097
// LOOPS: %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<1x4096x32xf32>
// LOOPS: scf.if %[[FITS]]
// LOOPS: scf.for
// LOOPS: vector.transfer_read %arg1{{.*}} vector<16x16xf32>
// LOOPS: vector.transfer_write %{{.*}}, %[[PANEL]]
// LOOPS: scf.for
// LOOPS: vector.transfer_write %{{.*}}, %[[PANEL]]
// LOOPS: vector.transfer_read %[[PANEL]]
// LOOPS: } else {
// LOOPS-NOT: %[[PANEL]]
// LOOPS: math.fma
func.func private @free(%x: tensor<20x?xf32>, %w: tensor<96x?xf32>, %k: index) -> tensor<20x96xf32> attributes {xt.kernel,
    xt.symbols = ["k"], xt.arg_dims = [[20, "k"], [96, "k"]], xt.result_dims = [[20, 96]],
    xcc.config = {block = array<i64: 0, 96>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
                  reduce = [array<i64: 1>], parallel = true, cpu = {columns = true}}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x96xf32>) -> tensor<20x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #t, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<20x?xf32>, tensor<96x?xf32>) outs(%f : tensor<20x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x96xf32>
  return %y : tensor<20x96xf32>
}

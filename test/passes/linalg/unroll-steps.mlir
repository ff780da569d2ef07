// RUN: %xcc_opt %s --split-input-file --pass-pipeline=unroll-steps | filecheck %s
// RUN: %xcc_opt %s --split-input-file --pass-pipeline="unroll-steps{steps=4}, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %s --split-input-file --pass-pipeline="tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// 70 steps, two of which share a byte and 32 a scale: groups of four, which read two bytes and one scale, and two more.
// CHECK-LABEL: @blocks
// CHECK: "reduction"
// CHECK-SAME: xcc.unrolled = 16
// LOOPS-LABEL: @blocks
// LOOPS: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c68 step %c4 iter_args(%[[ACC:.*]] = %[[ZERO:.*]]) -> (vector<32xf32>)
// LOOPS-COUNT-2: vector.transfer_read {{.*}} vector<32xi8>
// LOOPS-NOT: vector.transfer_read {{.*}} vector<32xi8>
// LOOPS: %[[SCALE:.*]] = vector.transfer_read {{.*}} vector<32xf32>
// LOOPS: %[[NEXT:.*]] = math.fma %{{.*}}, %[[SCALE]], %[[ACC]]
// LOOPS: scf.yield %[[NEXT]]
// LOOPS: scf.for %{{.*}} = %c68 to %c70 step %c1 iter_args(%{{.*}} = %[[SUM]])
// PLAIN-LABEL: @blocks
// PLAIN: scf.for %{{.*}} = %c0 to %c70 step %c1
// PLAIN: arith.mulf
// PLAIN: math.fma
#w = affine_map<(k, n) -> (k, n)>
func.func private @blocks(%x: tensor<70xf32>, %w: tensor<35x32xi8>, %s: tensor<3x32xf32>) -> tensor<32xf32> attributes
    {xt.kernel, xt.symbols = [], xt.arg_dims = [[70], [35, 32], [3, 32]], xt.result_dims = [[32]],
     xcc.config = {block = array<i64: 0>, vector = array<i64: 32>, order = array<i64: 0>, reduce = [array<i64: 1>]}} {
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c15 = arith.constant 15 : i32
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<70x32xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k floordiv 2, n)>, #w],
      iterator_types = ["parallel", "parallel"]} ins(%w : tensor<35x32xi8>) outs(%e0 : tensor<70x32xf32>) {
  ^bb0(%a: i8, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %half = arith.remui %j, %c2 : i32
    %by = arith.muli %half, %c4 : i32
    %b = arith.extui %a : i8 to i32
    %c = arith.shrui %b, %by : i32
    %d = arith.andi %c, %c15 : i32
    %g = arith.sitofp %d : i32 to f32
    linalg.yield %g : f32
  } -> tensor<70x32xf32>
  %v = linalg.generic {indexing_maps = [#w, affine_map<(k, n) -> (k floordiv 32, n)>, #w],
      iterator_types = ["parallel", "parallel"]} ins(%f, %s : tensor<70x32xf32>, tensor<3x32xf32>)
      outs(%e0 : tensor<70x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<70x32xf32>
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>,
      affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %v : tensor<70xf32>, tensor<70x32xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// Nothing is alike from step to step.
// CHECK-LABEL: @plain
// CHECK-NOT: xcc.unrolled
func.func private @plain(%x: tensor<64xf32>, %w: tensor<64x32xf32>) -> tensor<32xf32> attributes
    {xt.kernel, xt.symbols = [], xt.arg_dims = [[64], [64, 32]], xt.result_dims = [[32]],
     xcc.config = {block = array<i64: 0>, vector = array<i64: 32>, order = array<i64: 0>, reduce = [array<i64: 1>]}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>,
      affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<64xf32>, tensor<64x32xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// RUN: %xcc_opt %s --split-input-file --pass-pipeline="blocked-sums" | filecheck %s
// RUN: %xcc_opt %s --split-input-file --pass-pipeline="blocked-sums{steps=64}, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %s --split-input-file --pass-pipeline="tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// 10,000 rows of 16: blocks of 50 rows, as they divide them, and four of 50 such blocks.
// CHECK-LABEL: @columns
// CHECK: xcc.blocked = 512 : i64
// LOOPS-LABEL: @columns
// LOOPS: %[[ALL:.*]] = scf.for %{{.*}} = %c0 to %c10000 step %c2500 iter_args(%[[ACC:.*]] = %[[ZERO:.*]]) -> (vector<16xf32>)
// LOOPS: %[[MORE:.*]] = scf.for %{{.*}} step %c50 iter_args(%[[SUM:.*]] = %[[ZERO]])
// LOOPS: %[[PART:.*]] = scf.for %{{.*}} step %c1 iter_args(%{{.*}} = %[[ZERO]])
// LOOPS: arith.addf %[[SUM]], %[[PART]]
// LOOPS: arith.addf %[[ACC]], %[[MORE]]
// PLAIN-LABEL: @columns
// PLAIN: scf.for %{{.*}} = %c0 to %c10000 step %c1
func.func private @columns(%x: tensor<10000x16xf32>) -> tensor<16xf32> attributes {xt.kernel, xt.symbols = [],
    xt.arg_dims = [[10000, 16]], xt.result_dims = [[16]], xcc.config = {block = array<i64: 16>,
    vector = array<i64: 16>, order = array<i64: 0>, reduce = [array<i64: 1>]}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<10000x16xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// Of unknown length: blocks, the last of which ends where the row does.
// CHECK-LABEL: @unknown
// CHECK: xcc.blocked
// LOOPS-LABEL: @unknown
// LOOPS: scf.for %[[AT:.*]] = %c0 to %[[N:.*]] step %c64 iter_args
// LOOPS: %[[NEXT:.*]] = arith.addi %[[AT]], %c64
// LOOPS: %[[END:.*]] = arith.minsi %[[NEXT]], %[[N]]
// LOOPS: scf.for %{{.*}} = %[[AT]] to %[[END]] step %c1
func.func private @unknown(%x: tensor<?x16xf32>, %d0: index) -> tensor<16xf32> attributes {xt.kernel,
    xt.symbols = ["d0"], xt.arg_dims = [["d0", 16]], xt.result_dims = [[16]], xcc.config = {block = array<i64: 16>,
    vector = array<i64: 16>, order = array<i64: 0>, reduce = [array<i64: 1>]}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x16xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// A maximum is exact.
// CHECK-LABEL: @maximum
// CHECK-NOT: xcc.blocked
func.func private @maximum(%x: tensor<10000x16xf32>) -> tensor<16xf32> attributes {xt.kernel, xt.symbols = [],
    xt.arg_dims = [[10000, 16]], xt.result_dims = [[16]], xcc.config = {block = array<i64: 16>,
    vector = array<i64: 16>, order = array<i64: 0>, reduce = [array<i64: 1>]}} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<10000x16xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// Products over two loops of unknown size: blocks of the outer one alone, whose steps follow from the inner one's size.
// CHECK-LABEL: @window
// CHECK: xcc.blocked = 1024 : i64
// LOOPS-LABEL: @window
// LOOPS: %[[INNER:.*]] = arith.maxsi %[[K:.*]], %c1
// LOOPS: arith.floordivsi %c1024, %[[INNER]]
// LOOPS: %[[STEPS:.*]] = arith.maxsi
// LOOPS: scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step %[[STEPS]] iter_args(%{{.*}} = %[[ZERO:.*]]) -> (vector<16xf32>)
// LOOPS: scf.for {{.*}} step %c1 iter_args(%[[PART:.*]] = %[[ZERO]]) -> (vector<16xf32>)
// LOOPS-NEXT: scf.for {{.*}} = %c0 to %[[K]] step %c1 iter_args(%{{.*}} = %[[PART]])
func.func private @window(%x: tensor<?x?xf32>, %w: tensor<?x?x16xf32>, %d0: index, %d1: index) -> tensor<16xf32> attributes {xt.kernel,
    xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"], ["d0", "d1", 16]], xt.result_dims = [[16]], xcc.config = {
    block = array<i64: 16>, vector = array<i64: 16>, order = array<i64: 0>, reduce = [array<i64: 1, 1>]}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c, k) -> (c, k)>, affine_map<(n, c, k) -> (c, k, n)>,
      affine_map<(n, c, k) -> (n)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x?xf32>, tensor<?x?x16xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

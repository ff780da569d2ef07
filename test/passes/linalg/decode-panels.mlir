// RUN: %xcc_opt %s --pass-pipeline=decode-panels | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="peel-tails, decode-panels, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=LOOPS
// RUN: %xcc_opt %s --pass-pipeline="peel-tails, tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN

// CHECK: arith.sitofp
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: xcc.decoded

// LOOPS: %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<1x64x32xf32>
// LOOPS: arith.sitofp
// LOOPS: vector.transfer_write %{{.*}}, %[[PANEL]]
// LOOPS: scf.for
// LOOPS: vector.transfer_read %[[PANEL]]
// LOOPS: math.fma

// PLAIN-NOT: memref.alloca
// PLAIN: scf.for %{{.*}} = %c0 to %c64 step %c1
// PLAIN: arith.sitofp
// PLAIN: math.fma
#w = affine_map<(p, k, n) -> (p, k, n)>
func.func private @k(%x: tensor<40x64xf32>, %w: tensor<3x64x32xi8>) -> tensor<40x96xf32> attributes {xt.kernel,
    xt.symbols = [], xt.arg_dims = [[40, 64], [3, 64, 32]], xt.result_dims = [[40, 96]],
    xcc.config = {block = array<i64: 20, 0>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
                  reduce = [array<i64: 1>], parallel = true, cpu = {decoded = true}}} {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<3x64x32xf32>
  %d = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<3x64x32xi8>) outs(%s : tensor<3x64x32xf32>) {
  ^bb0(%a: i8, %o: f32):
    %f = arith.sitofp %a : i8 to f32
    linalg.yield %f : f32
  } -> tensor<3x64x32xf32>
  %e = tensor.empty() : tensor<40x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x96xf32>) -> tensor<40x96xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %d : tensor<40x64xf32>, tensor<3x64x32xf32>) outs(%f : tensor<40x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<40x96xf32>
  return %y : tensor<40x96xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=stream-k, tile, mlir(canonicalize, cse)" | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=stream-k | filecheck %s --check-prefix=DECIDED
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=tile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=PLAIN
// RUN: not %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=stream-k{tiles=5,4}, tile" 2>&1 | filecheck %s --check-prefix=WRONG

// DECIDED: func.func private @product
// DECIDED-SAME: xcc.streamed = array<i64: 3, 4>
// PLAIN: func.func private @product(%{{.*}}: memref<192x512xf16>, %{{.*}}: memref<192x512xf16>, %{{.*}}: memref<192x192xf32>)
// PLAIN: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (192, 192) step (64, 64)
// PLAIN-NOT: scf.forall
// WRONG: streamed (5, 4) must be tiles and as many workers or more

// Nine tiles: six workgroups compute one each; the steps of three tiles (24) are dealt out to four, six each, which write
// their sums to the workspace. A second loop adds the sums of 16 rows of a tile.
// CHECK-LABEL: func.func private @product(
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<192x192xf32>, %[[SUMS:[a-z0-9]+]]: memref<8x64x64xf32>)
// CHECK-SAME: xcc.scratch = ["131072"]
// CHECK-SAME: xt.scratch_dims = {{.}}[8, 64, 64]]
// CHECK: scf.forall (%[[W:.*]]) in (10) {
// CHECK: %[[WHOLE:.*]] = arith.cmpi ult, %[[W]], %c6
// CHECK: scf.if %[[WHOLE]] {
// CHECK: scf.for {{.*}} = %c0 to %c512 step %c64
// CHECK: vector.transfer_write {{.*}}, %[[OUT]]
// CHECK: } else {
// CHECK: %[[BEGIN:.*]] = arith.muli {{.*}}, %c6
// CHECK: scf.for
// CHECK: scf.for
// CHECK: vector.contract
// CHECK: vector.transfer_write {{.*}}, %[[SUMS]]
// CHECK: scf.forall (%{{.*}}) in (12) {
// CHECK: scf.for {{.*}} -> (vector<16x64xf32>)
// CHECK: vector.transfer_read %[[SUMS]]
// CHECK: arith.addf
// CHECK: vector.transfer_write {{.*}}, %[[OUT]]
func.func private @product(%x: tensor<192x512xf16>, %w: tensor<192x512xf16>) -> tensor<192x192xf32>
    attributes {xt.kernel, xcc.config = {access = "gather", block = array<i64: 64, 64>, vector = array<i64: 64, 64>, order = array<i64: 0, 1>, parallel = true, reduce = [array<i64: 64>], tail = "mask", gpu = {stages = 4 : i64, streamed = array<i64: 3, 4>, threads = 128 : i64}}, xt.symbols = [], xt.arg_dims = [[192, 512], [192, 512]], xt.result_dims = [[192, 192]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<192x192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<192x192xf32>) -> tensor<192x192xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<192x512xf16>, tensor<192x512xf16>) outs(%f : tensor<192x192xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<192x192xf32>
  return %y : tensor<192x192xf32>
}

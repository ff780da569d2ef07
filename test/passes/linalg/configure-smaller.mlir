// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure{tuned=false smaller=1}" | filecheck %s --check-prefixes=ONE
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure{tuned=false smaller=2}" | filecheck %s --check-prefixes=TWO
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure{tuned=false smaller=4}" | filecheck %s --check-prefixes=FOUR
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure{tuned=false smaller=11}" | filecheck %s --check-prefixes=ELEVEN

// What is tried where the strategy's tiles have no room in shared memory: fewer stages, none, sides halved, then steps.

// ONE-LABEL: func.func private @large(
// ONE-SAME: block = array<i64: 128, 256>{{.*}}stages = 2 : i64
// TWO-LABEL: func.func private @large(
// TWO-NOT: {{stages|warpgroup|persistent}}
// TWO: block = array<i64: 128, 256>
// TWO-NOT: {{stages|warpgroup|persistent}}
// FOUR-LABEL: func.func private @large(
// FOUR-SAME: block = array<i64: 64, 128>{{.*}}reduce = [array<i64: 64>]
// ELEVEN-LABEL: func.func private @large(
// ELEVEN-SAME: block = array<i64: 16, 16>{{.*}}reduce = [array<i64: 16>]
func.func private @large(%x: tensor<4000x4000xf16>, %w: tensor<4000x4000xf16>) -> tensor<4000x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf16>, tensor<4000x4000xf16>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y : tensor<4000x4000xf32>
}

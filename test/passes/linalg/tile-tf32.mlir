// RUN: %xcc_opt %s --precision=tf32 --target=nvptx --chip=sm_90a --pass-pipeline='configure{target=nvptx}, tile' | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline='configure{target=nvptx}, tile' | filecheck %s --check-prefix=EXACT

// f32 products stay f32 unless tf32 is asked for.
// CHECK: vector.contract {{.*}}xcc.lossy
// EXACT: vector.contract
// EXACT-NOT: xcc.lossy
func.func private @k(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[128, 128], [128, 128]], xt.result_dims = [[128, 128]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%f : tensor<128x128xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline='configure{target=nvptx}, tile' --split-input-file | filecheck %s

// A multiplication that may round its factors: tiles of instructions on tf32.
// CHECK-LABEL: func.func private @k(
// CHECK-SAME: warpgroup = true
// CHECK: vector.contract {{.*}}xcc.lossy
func.func private @k(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[512, 512], [512, 512]], xt.result_dims = [[512, 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y {xcc.lossy} : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

// -----

// Another one does not.
// CHECK-LABEL: func.func private @exact(
// CHECK-NOT: warpgroup
// CHECK: vector.contract
// CHECK-NOT: xcc.lossy
func.func private @exact(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[512, 512], [512, 512]], xt.result_dims = [[512, 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%f : tensor<512x512xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

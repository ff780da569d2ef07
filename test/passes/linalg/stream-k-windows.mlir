// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure{target=nvptx tuned=false}, stream-k, tile, mlir(canonicalize, cse)" --target=nvptx --chip=sm_90a | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure{target=nvptx tuned=false}, stream-k, tile, mlir(canonicalize, cse), assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, distribute, mlir(canonicalize, cse)" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=THREAD

// A filter's gradient: 18 tiles, of which seven workgroups add up the 392 steps over all pixels, 56 each; then their sums.
// CHECK-LABEL: func.func private @gradient
// CHECK-SAME: streamed = array<i64: 18, 126>
// CHECK: scf.forall (%[[W:.*]]) in (126) {
// CHECK: arith.divui %[[W]], %c7
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c64
// CHECK: vector.gather
// CHECK: vector.contract
// CHECK: vector.transfer_write {{.*}} : vector<{{.*}}xf32>, memref<252x
// CHECK: scf.forall
// CHECK: vector.transfer_read {{.*}} : memref<252x
// CHECK: vector.transfer_write {{.*}} : vector<{{.*}}xf16>

// Windows are copied from the pixels' own places: no coordinate is clamped, and none is divided out for an address.
// THREAD-LABEL: gpu.func @gradient(
// THREAD: scf.for
// THREAD-NOT: arith.maxsi
// THREAD-NOT: arith.minsi
// THREAD: nvgpu.device_async_copy
// THREAD-NOT: arith.maxsi
// THREAD-NOT: arith.minsi
// THREAD: gpu.return
func.func private @gradient(%x: tensor<128x14x14x256xf16>, %g: tensor<128x14x14x256xf16>) -> tensor<256x3x3x256xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %g) {dtype = f16, filter = "GIHWO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "CHWN", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<128x14x14x256xf16>, tensor<128x14x14x256xf16>) -> tensor<256x3x3x256xf16>
  return %0 : tensor<256x3x3x256xf16>
}

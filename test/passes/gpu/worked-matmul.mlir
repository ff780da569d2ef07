// The matmul of docs/gpu.md: what is quoted there.
// RUN: %xcc %s --target=nvptx --chip=sm_80 --dump-stages=%t-nv --emit=gpu -o - | filecheck %s --check-prefix=NV
// RUN: filecheck %s --check-prefix=NV-TILE < %t-nv/04-vector.mlir
// RUN: %xcc %s --target=amdgcn --chip=gfx942 --dump-stages=%t-amd --emit=gpu -o - | filecheck %s --check-prefix=AMD
// RUN: filecheck %s --check-prefix=AMD-TILE < %t-amd/04-vector.mlir

// NV-TILE: block = array<i64: 128, 64>, gpu = {group = 8 : i64, stages = 4 : i64, threads = 128 : i64}, {{.*}}reduce = [array<i64: 32>]
// NV-TILE: scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (2048, 2048) step (128, 64)
// NV-TILE: scf.for %[[K:.*]] = %c0 to %c2048 step %c32 {{.*}} -> (vector<128x64xf32>)
// NV-TILE: vector.transfer_read %{{.*}}[%[[I]], %[[K]]], {{.*}}vector<128x32xf16>
// NV-TILE: vector.transfer_read %{{.*}}[%[[K]], %[[J]]], {{.*}}vector<32x64xf16>
// NV-TILE: vector.contract {{.*}} : vector<128x32xf16>, vector<32x64xf16> into vector<128x64xf32>
// NV-TILE: arith.truncf
// NV-TILE: vector.transfer_read %{{.*}}[%[[J]]], {{.*}}vector<64xf16>
// NV-TILE: vector.transfer_write %{{.*}}, %{{.*}}[%[[I]], %[[J]]]

// AMD-TILE: block = array<i64: 128, 128>, gpu = {group = 8 : i64, stages = 2 : i64, threads = 256 : i64}, {{.*}}reduce = [array<i64: 64>]
// AMD-TILE: vector.contract {{.*}} : vector<128x64xf16>, vector<64x128xf16> into vector<128x128xf32>

// NV: xcc.shared_bytes = 49152
// NV-COUNT-18: nvgpu.device_async_copy
// NV: scf.for
// NV: nvvm.cp.async.wait.group 2
// NV-NEXT: gpu.barrier
// NV-COUNT-2: nvgpu.ldmatrix {{.*}}transpose = false
// NV-COUNT-4: nvgpu.ldmatrix {{.*}}transpose = true
// NV-COUNT-8: nvgpu.mma.sync
// NV-COUNT-6: nvgpu.device_async_copy
// NV-COUNT-8: nvgpu.mma.sync
// NV-COUNT-6: nvgpu.ldmatrix
// NV-COUNT-16: nvgpu.mma.sync
// NV-NOT: nvgpu.mma.sync
// NV: scf.yield

// AMD: xcc.shared_bytes = 65536
// AMD: scf.for
// AMD: amdgpu.lds_barrier
// AMD-COUNT-4: vector.load {{.*}}alignment = 16{{.*}}memref<2048x2048xf16>, vector<8xf16>
// AMD-COUNT-8: vector.load {{.*}}memref<2048x2048xf16>, vector<4xf16>
// AMD: amdgpu.sched_barrier
// AMD-COUNT-8: vector.load {{.*}}workgroup>>, vector<8xf16>
// AMD-COUNT-8: amdgpu.mfma 32x32x8
// AMD-COUNT-4: vector.load {{.*}}workgroup>>, vector<8xf16>
// AMD-COUNT-8: amdgpu.mfma 32x32x8
// AMD-COUNT-4: vector.load {{.*}}workgroup>>, vector<8xf16>
// AMD-COUNT-16: amdgpu.mfma 32x32x8
// AMD-NOT: amdgpu.mfma
// AMD: amdgpu.sched_barrier
// AMD-COUNT-8: vector.store {{.*}}workgroup>>, vector<8xf16>
// AMD: scf.yield
func.func @main(%a: tensor<2048x2048xf16> {xt.name = "a"}, %b: tensor<2048x2048xf16> {xt.name = "b"}, %bias: tensor<2048xf16> {xt.name = "bias"})
    -> (tensor<2048x2048xf16> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf16>
  %1 = "xt.add"(%0, %bias) : (tensor<2048x2048xf16>, tensor<2048xf16>) -> tensor<2048x2048xf16>
  return %1 : tensor<2048x2048xf16>
}

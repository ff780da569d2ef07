// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=NV
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=AMD

// Of a number of steps that the run knows, the last ones stand behind the loop, which copies without a test.
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=STEPS
// STEPS: %[[END:.*]] = arith.muli %arg4, %c64
// STEPS: %[[FIRST:.*]] = arith.cmpi sgt, %[[END]], %c0
// STEPS: arith.select %[[FIRST]], %c8, %c0
// STEPS: nvvm.cp.async.commit.group
// STEPS: arith.cmpi sgt, %[[END]], %c64
// STEPS: nvvm.cp.async.commit.group
// STEPS: arith.cmpi sgt, %[[END]], %c128
// STEPS: nvvm.cp.async.commit.group
// STEPS: %[[EXTENT:.*]] = arith.maxsi %[[END]], %c0
// STEPS: %[[COUNT:.*]] = arith.ceildivui %[[EXTENT]], %c64
// STEPS: %[[OTHERS:.*]] = arith.subi %[[COUNT]], %c3
// STEPS: %[[SOME:.*]] = arith.maxsi %[[OTHERS]], %c0
// STEPS: %[[BEHIND:.*]] = arith.muli %[[SOME]], %c64
// STEPS: scf.for %{{.*}} = %c0 to %[[BEHIND]] step %c64
// STEPS-NOT: arith.cmpi s
// STEPS: nvgpu.device_async_copy
// STEPS: scf.yield
// STEPS-NOT: nvgpu.device_async_copy
// STEPS-COUNT-3: gpu.barrier
// STEPS-NOT: nvgpu.device_async_copy
// STEPS: vector.store

// Persistent: during the last steps those of the next tile are copied, if there are such a tile and such a step.
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=ROUNDS
// ROUNDS: %[[INSIDE:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// ROUNDS: scf.for %[[TILE:.*]] = %block_id_x to %c8 step %c3
// ROUNDS: %[[NEXT:.*]] = arith.addi %[[TILE]], %c3
// ROUNDS: %[[MORE:.*]] = arith.cmpi ult, %[[NEXT]], %c8
// ROUNDS: arith.ceildivui
// ROUNDS: scf.for
// ROUNDS: scf.yield
// ROUNDS: %[[BOTH:.*]] = arith.andi %[[MORE]], %[[INSIDE]]
// ROUNDS: arith.select %[[BOTH]], %c8, %c0
// ROUNDS: nvgpu.device_async_copy

// Three slots a tile: two steps are copied ahead, one barrier a step, no load through registers.
// NV-LABEL: gpu.func @matmul(
// NV-SAME: xcc.shared_bytes = 24576
// A thread's copies of a tile differ by constants.
// NV: memref.reinterpret_cast %arg0 to offset: [%{{.*}}], sizes: [16384], strides: [1]
// NV: nvgpu.device_async_copy %{{.*}}[%c0], %{{.*}}, 8 {bypassL1} : memref<?xf16, strided<[1], offset: ?>>
// NV: nvgpu.device_async_copy %{{.*}}[%c8192], %{{.*}}, 8 {bypassL1}
// NV: memref.reinterpret_cast %arg1
// NV: nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
// NV: nvvm.cp.async.commit.group
// NV: nvvm.cp.async.commit.group
// NV: scf.for
// NV: nvvm.cp.async.wait.group 1
// NV-NEXT: gpu.barrier
// NV-NOT: gpu.barrier
// NV-NOT: scf.if
// NV: nvgpu.ldmatrix
// NV-COUNT-4: nvgpu.mma.sync
// NV: nvgpu.device_async_copy
// NV: nvvm.cp.async.commit.group
// NV-COUNT-12: nvgpu.mma.sync
// NV: scf.yield

// Without such copies the next tile is loaded into registers before the instructions of this one, without a branch, and
// written to the other slot behind them.
// AMD-LABEL: gpu.func @matmul(
// AMD-SAME: xcc.shared_bytes = 16384
// AMD: vector.load
// AMD: vector.store
// AMD: scf.for {{.*}} to %c192 step
// AMD: amdgpu.lds_barrier
// AMD-NOT: scf.if
// AMD-NOT: arith.select
// AMD: vector.load {{.*}} : memref<64x256xf16>
// AMD: amdgpu.sched_barrier
// The fragments of the second instruction's k are read before the first ones are multiplied.
// AMD: vector.load {{.*}} #gpu.address_space<workgroup>
// AMD: amdgpu.sched_barrier
// AMD-COUNT-4: amdgpu.mfma
// AMD: amdgpu.sched_barrier
// AMD-NOT: vector.load
// AMD-COUNT-4: amdgpu.mfma
// AMD-NOT: amdgpu.mfma
// AMD: amdgpu.sched_barrier
// AMD: vector.store {{.*}} #gpu.address_space<workgroup>
// AMD-NOT: amdgpu.lds_barrier
// AMD: scf.yield
// Behind the loop stand the last two steps. The last one loads nothing.
// AMD: amdgpu.lds_barrier
// AMD: vector.load {{.*}} : memref<64x256xf16>
// AMD-COUNT-8: amdgpu.mfma
// AMD: vector.store {{.*}} #gpu.address_space<workgroup>
// AMD: amdgpu.lds_barrier
// AMD-NOT: vector.load {{.*}} : memref<64x256xf16>
// AMD-COUNT-8: amdgpu.mfma
// AMD-NOT: vector.store {{.*}} #gpu.address_space<workgroup>
// AMD: gpu.return
func.func @matmul(%a: memref<64x256xf16>, %b: memref<256x64xf16>, %o: memref<64x64xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x64xf32>
    %r = scf.for %k = %c0 to %c256 step %c32 iter_args(%acc = %init) -> (vector<64x64xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x256xf16>, vector<64x32xf16>
      %tb = vector.transfer_read %b[%k, %c0], %h {in_bounds = [true, true]} : memref<256x64xf16>, vector<32x64xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x32xf16>, vector<32x64xf16> into vector<64x64xf32>
      scf.yield %c : vector<64x64xf32>
    }
    vector.transfer_write %r, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x64xf32>, memref<64x64xf32>
  }
  return
}

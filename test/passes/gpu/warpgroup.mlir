// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s --check-prefix=SM90
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s --check-prefix=SM80

// Four slots a tile, two steps copied ahead: instructions of a step run on during the next one.
// SM90-LABEL: gpu.func @matmul(
// SM90-SAME: xcc.shared_bytes = 98304
// SM90: nvvm.cp.async.commit.group
// SM90: nvvm.cp.async.commit.group
// SM90: scf.for
// SM90: nvvm.cp.async.wait.group 1
// SM90-NEXT: gpu.barrier
// SM90-NOT: gpu.barrier
// SM90: "xtg.wgmma"
// SM90-SAME: a = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 16, 32, 48>}
// SM90-SAME: b = {blocks = 8192 : i64, near_k = false, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 1024, 2048, 3072>}
// SM90-SAME: k = 16 : i64, m = 64 : i64, n = 128 : i64
// SM90-NEXT: nvvm.wgmma.commit.group.sync.aligned
// SM90: nvgpu.device_async_copy
// SM90: nvvm.cp.async.commit.group
// SM90-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
// SM90: scf.yield
// SM90: nvvm.cp.async.wait.group 0
// SM90: "xtg.wgmma_wait"

// A chip without them takes its own instructions.
// SM80-LABEL: gpu.func @matmul(
// SM80-NOT: xtg
// SM80: nvgpu.mma.sync
func.func @matmul(%a: memref<64x256xf16>, %b: memref<256x128xf16>, %o: memref<64x128xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x256xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%k, %c0], %h {in_bounds = [true, true]} : memref<256x128xf16>, vector<64x128xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x128xf32>
  }
  return
}

// -----

// The right operand lies in rows along k, in an order that lets a thread hold and store eight neighbours of the result.
// One workgroup computes three tiles: during a tile's last two steps the first two of the next are copied, if there is one,
// and its results are waited for when they are stored. Where a tile lies is computed once, ahead of its copies.
// SM90-LABEL: gpu.func @rounds(
// SM90-SAME: xcc.grid = "1"
// SM90-COUNT-2: nvvm.cp.async.commit.group
// SM90: scf.for %[[TILE:.*]] = %block_id_x to %c3 step %c1 iter_args(%[[SLOT:.*]] = %c0, %{{.*}} = %{{.*}}) -> (index, index) {
// SM90: %[[MORE:.*]] = arith.cmpi ult
// SM90: scf.for {{.*}} = %c0 to %c384 step %c64 iter_args({{.*}}, %{{.*}} = %[[SLOT]])
// SM90: "xtg.wgmma"
// SM90: nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
// SM90: scf.yield
// SM90: nvvm.cp.async.wait.group 1
// SM90: %[[NEXT:.*]] = scf.if %[[MORE]] -> (index)
// SM90: arith.select %[[MORE]], %c8, %c0
// SM90: nvvm.cp.async.wait.group 1
// SM90: "xtg.wgmma_wait"
// SM90: vector.store {{.*}} {alignment = 16 : i64} : memref<192x128xf16>, vector<8xf16>
// SM90: scf.yield %{{.*}}, %[[NEXT]] : index, index
// SM90: nvvm.cp.async.wait.group 0
func.func @rounds(%a: memref<192x512xf16>, %b: memref<128x512xf16>, %o: memref<192x128xf16>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true, persistent = 1 : i64}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) = (0) to (192) step (64) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%i, %k], %h {in_bounds = [true, true]} : memref<192x512xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%c0, %k], %h {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<128x64xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    %t = arith.truncf %r : vector<64x128xf32> to vector<64x128xf16>
    vector.transfer_write %t, %o[%i, %c0] {in_bounds = [true, true]} : vector<64x128xf16>, memref<192x128xf16>
  }
  return
}

// -----

// Eight steps: four stand behind the loop, of which the last two copy nothing; each loads a quarter of the residual.
// SM90-LABEL: gpu.func @residual(
// SM90: scf.for {{.*}} = %c0 to %c256 step %c64
// SM90: nvgpu.device_async_copy
// SM90: scf.yield
// SM90-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<64x128xf16>, vector<8xf16>
// SM90: nvvm.cp.async.wait.group 1
// SM90: nvgpu.device_async_copy
// SM90: nvvm.cp.async.commit.group
// SM90-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<64x128xf16>, vector<8xf16>
// SM90: nvvm.cp.async.wait.group 1
// SM90: nvgpu.device_async_copy
// SM90: nvvm.cp.async.commit.group
// SM90-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<64x128xf16>, vector<8xf16>
// SM90: nvvm.cp.async.wait.group 1
// SM90-NOT: nvgpu.device_async_copy
// SM90-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<64x128xf16>, vector<8xf16>
// SM90: nvvm.cp.async.wait.group 1
// SM90-NOT: nvgpu.device_async_copy
// SM90: nvvm.cp.async.wait.group 0
// SM90-NOT: vector.load
// SM90: "xtg.wgmma_wait"
// SM90-NOT: vector.load
// SM90: vector.store
func.func @residual(%a: memref<64x512xf16>, %b: memref<128x512xf16>, %x: memref<64x128xf16>, %o: memref<64x128xf16>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x512xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%c0, %k], %h {in_bounds = [true, true]} : memref<128x512xf16>, vector<128x64xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<128x64xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    %t = arith.truncf %r : vector<64x128xf32> to vector<64x128xf16>
    %y = vector.transfer_read %x[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x128xf16>, vector<64x128xf16>
    %z = arith.addf %t, %y : vector<64x128xf16>
    vector.transfer_write %z, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x128xf16>, memref<64x128xf16>
  }
  return
}

// -----

// Of a vector of 128 columns 96 are on: the instruction has as many, and nothing is stored of the others.
// SM90-LABEL: gpu.func @columns(
// SM90: "xtg.wgmma"
// SM90-SAME: m = 64 : i64, n = 96 : i64
// SM90-SAME: (vector<48xf32>
// SM90-COUNT-24: vector.store
// SM90-NOT: vector.store
// SM80-LABEL: gpu.func @columns(
func.func @columns(%a: memref<64x256xf16>, %b: memref<256x96xf16>, %o: memref<64x96xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %h = arith.constant 0.0 : f16
  %some = vector.constant_mask [64, 96] : vector<64x128xi1>
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x256xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%k, %c0], %h, %some {in_bounds = [true, true]} : memref<256x96xf16>, vector<64x128xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%c0, %c0], %some {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x96xf32>
  }
  return
}

// -----

// Of 64 terms and 128 columns 40 and 80 are there: three steps, and the accumulators of the others are zeros in all turns,
// which nobody keeps; factors do not change that.
// SM90-LABEL: gpu.func @features(
// SM90: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// SM90: scf.for
// SM90: "xtg.wgmma"
// SM90-SAME: a = {{{.*}} steps = array<i64: 0, 16, 32>}
// SM90-SAME: b = {{{.*}} steps = array<i64: 0, 1024, 2048>}
// SM90-SAME: m = 64 : i64, n = 80 : i64
// SM90: vector.from_elements {{.*}}%[[ZERO]], %[[ZERO]] : vector<64xf32>
// SM90: scf.yield
// SM80-LABEL: gpu.func @features(
// SM80: scf.for
// SM80-COUNT-48: nvgpu.mma.sync
// SM80-NOT: nvgpu.mma.sync
// SM80: scf.yield
func.func @features(%a: memref<4x64x40xf16>, %b: memref<4x40x80xf16>, %s: f32, %o: memref<64x80xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 2 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %h = arith.constant 0.0 : f16
  %left = vector.constant_mask [64, 40] : vector<64x64xi1>
  %right = vector.constant_mask [40, 80] : vector<64x128xi1>
  %some = vector.constant_mask [64, 80] : vector<64x128xi1>
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%k, %c0, %c0], %h, %left {in_bounds = [true, true]} : memref<4x64x40xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%k, %c0, %c0], %h, %right {in_bounds = [true, true]} : memref<4x40x80xf16>, vector<64x128xf16>
      %f = vector.broadcast %s : f32 to vector<64x128xf32>
      %x = arith.mulf %acc, %f : vector<64x128xf32>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %x : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%c0, %c0], %some {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x80xf32>
  }
  return
}

// -----

// What is not 0 past its mask is multiplied.
// SM90-LABEL: gpu.func @ones(
// SM90: "xtg.wgmma"
// SM90-SAME: steps = array<i64: 0, 16, 32, 48>
// SM90-SAME: n = 128 : i64
// SM80-LABEL: gpu.func @ones(
func.func @ones(%a: memref<64x40xf16>, %b: memref<40x80xf16>, %o: memref<64x128xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 2 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 1.0 : f16
  %left = vector.constant_mask [64, 40] : vector<64x64xi1>
  %right = vector.constant_mask [40, 80] : vector<64x128xi1>
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h, %left {in_bounds = [true, true]} : memref<64x40xf16>, vector<64x64xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h, %right {in_bounds = [true, true]} : memref<40x80xf16>, vector<64x128xf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x128xf32>
  }
  return
}

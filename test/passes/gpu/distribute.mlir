// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s

// 16-byte accesses; the last dim's bound is a multiple of 4, so one predicate guards each of them.
// CHECK-LABEL: gpu.func @scale(
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "d0", xcc.shared_bytes = 0 : i64
// CHECK: gpu.thread_id x
// CHECK: gpu.block_id x
// CHECK: scf.if
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<?x200xf32>, vector<4xf32>
// CHECK-NOT: memref.load
// CHECK: arith.mulf
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<?x200xf32>, vector<4xf32>
func.func @scale(%x: memref<?x200xf32>, %o: memref<?x200xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %c200 = arith.constant 200 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %m = vector.create_mask %c200 : vector<256xi1>
    %a = vector.transfer_read %x[%i, %c0], %pad, %m {in_bounds = [true]} : memref<?x200xf32>, vector<256xf32>
    %s = arith.mulf %a, %a : vector<256xf32>
    vector.transfer_write %s, %o[%i, %c0], %m {in_bounds = [true]} : vector<256xf32>, memref<?x200xf32>
  }
  return
}


// -----

// A function that is launched for some sizes only has no workgroups for the others.
// CHECK-LABEL: gpu.func @some_sizes(
// CHECK-SAME: xcc.grid = "d0*min(1, floordiv(d0, 100))"
func.func @some_sizes(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}, xcc.launched = "min(1, floordiv(d0, 100))"} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<?x256xf32>, vector<256xf32>
    vector.transfer_write %a, %o[%i, %c0] {in_bounds = [true]} : vector<256xf32>, memref<?x256xf32>
  }
  return
}

// -----

// A row in two warps: registers, then five shuffles, then shared memory; one thread stores.
// CHECK-LABEL: gpu.func @total(
// CHECK: gpu.dynamic_shared_memory
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.barrier
// CHECK: memref.store
func.func @total(%x: memref<?x256xf32>, %o: memref<?xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true]} : memref<?x256xf32>, vector<256xf32>
    %s = vector.multi_reduction <add>, %a, %zero [0] : vector<256xf32> to f32
    memref.store %s, %o[%i] : memref<?xf32>
  }
  return
}

// -----

// Matrix instructions on fragments that pass through shared memory.
// CHECK-LABEL: gpu.func @matmul(
// CHECK-SAME: xcc.product
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK: gpu.barrier
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-2: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK-NOT: nvgpu.mma.sync
func.func @matmul(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %o: memref<16x16xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x16xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  }
  return
}

// -----

// Two phases are two launches; a phase without a forall is one workgroup.
// CHECK-LABEL: gpu.func @two(
// CHECK-SAME: xcc.grid = "floordiv(d0 + 127, 128)"
// CHECK: memref.store
// CHECK-LABEL: gpu.func @two_1(
// CHECK-SAME: xcc.grid = "1"
// CHECK: arith.cmpi eq
// CHECK: memref.store
func.func @two(%x: memref<?xf32>, %o: memref<f32>, %d0: index) attributes {xt.kernel, xcc.loops, xt.symbols = ["d0"]} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    memref.store %zero, %x[%i] : memref<?xf32>
  }
  memref.store %zero, %o[] : memref<f32>
  return
}

// -----

// A product's epilogue is computed and stored 16 of its 32 registers at a time; what the second half of the residual
// needs is asked for before the first half is stored.
// CHECK-LABEL: gpu.func @streamed(
// CHECK-COUNT-8: nvgpu.mma.sync
// CHECK-COUNT-16: vector.load {{.*}} : memref<64x64xf32>, vector<2xf32>
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK-COUNT-8: vector.store {{.*}} : memref<64x64xf32>, vector<2xf32>
// CHECK-NOT: vector.store
// CHECK-NOT: vector.load
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK-COUNT-8: vector.store {{.*}} : memref<64x64xf32>, vector<2xf32>
func.func @streamed(%a: memref<64x16xf16>, %b: memref<16x64xf16>, %r: memref<64x64xf32>, %o: memref<64x64xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f16
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x64xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x16xf16>, vector<64x16xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x64xf16>, vector<16x64xf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<64x16xf16>, vector<16x64xf16> into vector<64x64xf32>
    %t = vector.transfer_read %r[%c0, %c0], %z {in_bounds = [true, true]} : memref<64x64xf32>, vector<64x64xf32>
    %s = arith.addf %c, %t : vector<64x64xf32>
    %e = math.exp %s : vector<64x64xf32>
    vector.transfer_write %e, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x64xf32>, memref<64x64xf32>
  }
  return
}

// -----

// Rows that are all there or none, and which does not depend on the thread: no thread compares its own, nor the columns of
// the first half, which are all there.
// CHECK-LABEL: gpu.func @all_or_none(
// CHECK: %[[P:.*]] = arith.cmpi ult, %block_id_x
// CHECK: %[[C:.*]] = arith.cmpi slt, %{{.*}}, %c252
// CHECK: %[[M:.*]] = arith.andi %[[P]], %[[C]] : i1
// CHECK-NOT: arith.cmpi
// CHECK: scf.if %[[P]]
// CHECK: scf.if %[[M]]
// CHECK: scf.if %[[P]]
// CHECK: scf.if %[[M]]
func.func @all_or_none(%x: memref<?x256xf32>, %o: memref<?x256xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %c252 = arith.constant 252 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (16) {
    %p = arith.cmpi ult, %i, %d0 : index
    %rows = arith.select %p, %c4, %c0 : index
    %m = vector.create_mask %rows, %c252 : vector<4x256xi1>
    %a = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<?x256xf32>, vector<4x256xf32>
    vector.transfer_write %a, %o[%i, %c0], %m {in_bounds = [true, true]} : vector<4x256xf32>, memref<?x256xf32>
  }
  return
}

// -----

// A product by FMAs that no loop is around takes 16 steps of k at a time: what is behind a branch then does not take it along.
// CHECK-LABEL: gpu.func @alone(
// CHECK: gpu.barrier
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c32 step %c16 iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK: vector.fma
// CHECK: scf.yield
// CHECK: llvm.loop_annotation
// CHECK: scf.if
// CHECK-NOT: vector.fma
func.func @alone(%a: memref<?x32xf32>, %b: memref<32x32xf32>, %o: memref<?x32xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<32x32xf32>
  %n = arith.subi %d0, %c0 : index
  %mask = vector.create_mask %n, %c32 : vector<32x32xi1>
  %x = vector.transfer_read %a[%c0, %c0], %zero, %mask {in_bounds = [true, true]} : memref<?x32xf32>, vector<32x32xf32>
  %y = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true, true]} : memref<32x32xf32>, vector<32x32xf32>
  %r = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %none : vector<32x32xf32>, vector<32x32xf32> into vector<32x32xf32>
  vector.transfer_write %r, %o[%c0, %c0], %mask {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x32xf32>
  return
}

// RUN: %xcc_opt %s --pass-pipeline="amx-tiles{always=true}" | filecheck %s

#rows = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#panel = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#a = affine_map<(m, n, k, g) -> (m, k, g)>
#b = affine_map<(m, n, k, g) -> (k, n, g)>
#c = affine_map<(m, n, k, g) -> (m, n)>

// 32 x 32 sums in four registers; a step loads two registers of each operand. What the registers look like is set once.
// CHECK: llvm.mlir.global internal constant @[[CONFIG:amx_1010101010101010]](dense<[1, 0, {{.*}}64, 0, 64, 0
// CHECK-LABEL: func.func @pairs
// CHECK: scf.forall
// CHECK: %[[AT:.*]] = llvm.mlir.addressof @[[CONFIG]]
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"(%[[AT]])
// CHECK: memref.alloca
// CHECK-COUNT-4: "llvm.x86.tilezero"
// CHECK: scf.for %{{[^:]*}} {
// CHECK: "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %[[STRIDE:.*]]) : (i8, !llvm.ptr, i64)
// CHECK: "llvm.x86.tileloadd64"
// CHECK-NOT: transfer_read
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
// CHECK: }
// CHECK-COUNT-4: "llvm.x86.tilestored64"
// CHECK: vector.transfer_read
// CHECK: "llvm.x86.tilerelease"
func.func @pairs(%x: memref<64x128x2xbf16>, %w: memref<4x128x32x2xbf16>, %y: memref<64x128xf32>) attributes {xt.kernel} {
  %zero = arith.constant dense<0.0> : vector<32x32xf32>
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %pad = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  scf.forall (%i, %p) in (2, 4) {
    %buffer = memref.alloca() {alignment = 64 : i64} : memref<32x32xf32>
    %m = arith.muli %i, %c32 : index
    %n = arith.muli %p, %c32 : index
    %r = scf.for %k = %c0 to %c128 step %c16 iter_args(%s = %zero) -> vector<32x32xf32> {
      %u = vector.transfer_read %x[%m, %k, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<64x128x2xbf16>, vector<32x16x2xbf16>
      %v = vector.transfer_read %w[%p, %k, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #panel} : memref<4x128x32x2xbf16>, vector<16x32x2xbf16>
      %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u, %v, %s : vector<32x16x2xbf16>, vector<16x32x2xbf16> into vector<32x32xf32>
      scf.yield %t : vector<32x32xf32>
    }
    vector.transfer_write %r, %buffer[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
    %q = vector.transfer_read %buffer[%c0, %c0], %none {in_bounds = [true, true]} : memref<32x32xf32>, vector<8x32xf32>
    vector.transfer_write %q, %y[%m, %n] {in_bounds = [true, true]} : vector<8x32xf32>, memref<64x128xf32>
  }
  return
}

// Sums that are used as a vector stay vectors.
// CHECK-LABEL: func.func @used_at_once
// CHECK-NOT: llvm.x86
// CHECK: vector.contract
func.func @used_at_once(%x: memref<16x16x2xbf16>, %w: memref<16x32x2xbf16>, %y: memref<16x32xf32>) attributes {xt.kernel} {
  %zero = arith.constant dense<0.0> : vector<16x32xf32>
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%i) in (1) {
    %u = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x16x2xbf16>, vector<16x16x2xbf16>
    %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x32x2xbf16>, vector<16x32x2xbf16>
    %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u, %v, %zero : vector<16x16x2xbf16>, vector<16x32x2xbf16> into vector<16x32xf32>
    vector.transfer_write %t, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
  }
  return
}

// Bytes, unsigned by signed, without a loop; 20 rows are two registers of 10, the sums of 16 columns one each.
// CHECK-LABEL: func.func @bytes
// CHECK: llvm.mlir.addressof @amx_0a0a00000a0a1000
// CHECK-COUNT-2: "llvm.x86.tilezero"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbusd"
// CHECK-COUNT-2: "llvm.x86.tilestored64"
func.func @bytes(%x: memref<20x16x4xi8>, %w: memref<16x16x4xi8>, %y: memref<20x16xi32>) attributes {xt.kernel} {
  %zero = arith.constant dense<0> : vector<20x16xi32>
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  %none = arith.constant 0 : i32
  scf.forall (%i) in (1) {
    %buffer = memref.alloca() {alignment = 64 : i64} : memref<20x16xi32>
    %u = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<20x16x4xi8>, vector<20x16x4xi8>
    %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x16x4xi8>, vector<16x16x4xi8>
    %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 0>} %u, %v, %zero : vector<20x16x4xi8>, vector<16x16x4xi8> into vector<20x16xi32>
    vector.transfer_write %t, %buffer[%c0, %c0] {in_bounds = [true, true]} : vector<20x16xi32>, memref<20x16xi32>
    %q = vector.transfer_read %buffer[%c0, %c0], %none {in_bounds = [true, true]} : memref<20x16xi32>, vector<20x16xi32>
    vector.transfer_write %q, %y[%c0, %c0] {in_bounds = [true, true]} : vector<20x16xi32>, memref<20x16xi32>
  }
  return
}

// Steps of 5 groups: rows of the left registers are 20 bytes, the right one has 5 rows.
// CHECK-LABEL: func.func @few_groups
// CHECK: llvm.mlir.addressof @amx_0a0a00000a0a0500
// CHECK-COUNT-2: "llvm.x86.tilezero"
// CHECK: "llvm.x86.tileloadd64"
// CHECK: "llvm.x86.tdpbusd"
// CHECK-COUNT-2: "llvm.x86.tilestored64"
func.func @few_groups(%x: memref<20x5x4xi8>, %w: memref<5x16x4xi8>, %y: memref<20x16xi32>) attributes {xt.kernel} {
  %zero = arith.constant dense<0> : vector<20x16xi32>
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  %none = arith.constant 0 : i32
  scf.forall (%i) in (1) {
    %buffer = memref.alloca() {alignment = 64 : i64} : memref<20x16xi32>
    %u = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<20x5x4xi8>, vector<20x5x4xi8>
    %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<5x16x4xi8>, vector<5x16x4xi8>
    %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 0>} %u, %v, %zero : vector<20x5x4xi8>, vector<5x16x4xi8> into vector<20x16xi32>
    vector.transfer_write %t, %buffer[%c0, %c0] {in_bounds = [true, true]} : vector<20x16xi32>, memref<20x16xi32>
    %q = vector.transfer_read %buffer[%c0, %c0], %none {in_bounds = [true, true]} : memref<20x16xi32>, vector<20x16xi32>
    vector.transfer_write %q, %y[%c0, %c0] {in_bounds = [true, true]} : vector<20x16xi32>, memref<20x16xi32>
  }
  return
}

// Tiles of two heights in loops of their own: what the registers look like is set once before each loop. How far rows are
// apart is known when the kernel runs.
// CHECK-LABEL: func.func @heights
// CHECK: "llvm.x86.ldtilecfg"
// CHECK-NEXT: scf.for
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %arg0
// CHECK: arith.muli %[[STRIDES]]#0,
// CHECK: "llvm.x86.ldtilecfg"
// CHECK-NEXT: scf.for
// CHECK-NOT: ldtilecfg
// CHECK: "llvm.x86.tilerelease"
func.func @heights(%x: memref<?x?x2xbf16>, %w: memref<16x32x2xbf16>, %y: memref<?x32xf32>, %n: index) attributes {xt.kernel} {
  %zero32 = arith.constant dense<0.0> : vector<32x32xf32>
  %zero10 = arith.constant dense<0.0> : vector<10x32xf32>
  %c0 = arith.constant 0 : index
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  scf.forall (%i) in (2) {
    scf.for %m = %c0 to %n step %c32 {
      %buffer = memref.alloca() {alignment = 64 : i64} : memref<32x32xf32>
      %u = vector.transfer_read %x[%m, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<?x?x2xbf16>, vector<32x16x2xbf16>
      %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x32x2xbf16>, vector<16x32x2xbf16>
      %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u, %v, %zero32 : vector<32x16x2xbf16>, vector<16x32x2xbf16> into vector<32x32xf32>
      vector.transfer_write %t, %buffer[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
      %q = vector.transfer_read %buffer[%c0, %c0], %none {in_bounds = [true, true]} : memref<32x32xf32>, vector<32x32xf32>
      vector.transfer_write %q, %y[%m, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x32xf32>
    }
    scf.for %m = %c0 to %n step %c10 {
      %buffer = memref.alloca() {alignment = 64 : i64} : memref<10x32xf32>
      %u = vector.transfer_read %x[%m, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<?x?x2xbf16>, vector<10x16x2xbf16>
      %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x32x2xbf16>, vector<16x32x2xbf16>
      %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u, %v, %zero10 : vector<10x16x2xbf16>, vector<16x32x2xbf16> into vector<10x32xf32>
      vector.transfer_write %t, %buffer[%c0, %c0] {in_bounds = [true, true]} : vector<10x32xf32>, memref<10x32xf32>
      %q = vector.transfer_read %buffer[%c0, %c0], %none {in_bounds = [true, true]} : memref<10x32xf32>, vector<10x32xf32>
      vector.transfer_write %q, %y[%m, %c0] {in_bounds = [true, true]} : vector<10x32xf32>, memref<?x32xf32>
    }
  }
  return
}

// Sums that go on with what a part of a buffer has: its rows are 64 elements apart. Where something is written between, they
// stay vectors.
// CHECK-LABEL: func.func @continued
// CHECK: memref.reinterpret_cast
// CHECK-NOT: tilezero
// CHECK-COUNT-4: "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %c256{{.*}}) : (i8, !llvm.ptr, i64)
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
// CHECK-COUNT-4: "llvm.x86.tilestored64"(%{{.*}}, %{{.*}}, %c256{{.*}})
// CHECK-NOT: llvm.x86.tdp
// CHECK: vector.contract
func.func @continued(%x: memref<32x16x2xbf16>, %w: memref<16x32x2xbf16>, %y: memref<4096xf32>, %n: index) attributes {xt.kernel} {
  %zeros = arith.constant dense<0.0> : vector<1x32xf32>
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %sums = memref.reinterpret_cast %y to offset: [%n], sizes: [32, 32], strides: [64, 1] : memref<4096xf32> to memref<32x32xf32, strided<[64, 1], offset: ?>>
    %s = vector.transfer_read %sums[%c0, %c0], %none {in_bounds = [true, true]} : memref<32x32xf32, strided<[64, 1], offset: ?>>, vector<32x32xf32>
    %u = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<32x16x2xbf16>, vector<32x16x2xbf16>
    %v = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x32x2xbf16>, vector<16x32x2xbf16>
    %t = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u, %v, %s : vector<32x16x2xbf16>, vector<16x32x2xbf16> into vector<32x32xf32>
    vector.transfer_write %t, %sums[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32, strided<[64, 1], offset: ?>>
    %s2 = vector.transfer_read %sums[%c0, %c0], %none {in_bounds = [true, true]} : memref<32x32xf32, strided<[64, 1], offset: ?>>, vector<32x32xf32>
    vector.transfer_write %zeros, %sums[%c0, %c0] {in_bounds = [true, true]} : vector<1x32xf32>, memref<32x32xf32, strided<[64, 1], offset: ?>>
    %u2 = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<32x16x2xbf16>, vector<32x16x2xbf16>
    %v2 = vector.transfer_read %w[%c0, %c0, %c0], %pad {in_bounds = [true, true, true], permutation_map = #rows} : memref<16x32x2xbf16>, vector<16x32x2xbf16>
    %t2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %u2, %v2, %s2 : vector<32x16x2xbf16>, vector<16x32x2xbf16> into vector<32x32xf32>
    vector.transfer_write %t2, %sums[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32, strided<[64, 1], offset: ?>>
  }
  return
}

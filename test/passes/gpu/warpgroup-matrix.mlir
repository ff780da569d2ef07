// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=warpgroup-matrix | filecheck %s

// Descriptors: address / 16, blocks / 16 at bit 16 (at least 1), rows / 16 at bit 32, swizzle of 128 bytes at bit 62.
// CHECK-LABEL: func.func @multiply(
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK-DAG: arith.constant 4611686293305360384 : i64
// CHECK-DAG: arith.constant 4611686293338849280 : i64
// CHECK: llvm.inline_asm has_side_effects
// CHECK-SAME: wgmma.fence.sync.aligned; add.s64 a, $16, 0; add.s64 b, $17, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, p, 1, 1, 0, 1;
// CHECK-SAME: add.s64 a, $16, 2; add.s64 b, $17, 128; wgmma.mma_async
// CHECK-SAME: "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,0,1,2,3,4,5,6,7,l,l"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;", "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,0,1,2,3,4,5,6,7"
// CHECK-NOT: xtg
func.func @multiply(%acc: vector<8xf32>, %a: memref<2048xf16, #gpu.address_space<workgroup>>, %b: memref<2048xf16, #gpu.address_space<workgroup>>, %at: index) -> vector<8xf32> {
  %r = "xtg.wgmma"(%acc, %a, %at, %b, %at) {m = 64 : i64, n = 16 : i64, k = 16 : i64, types = ["f16", "f16"],
    a = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 16>},
    b = {blocks = 8192 : i64, near_k = false, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 1024>}}
    : (vector<8xf32>, memref<2048xf16, #gpu.address_space<workgroup>>, index, memref<2048xf16, #gpu.address_space<workgroup>>, index) -> vector<8xf32>
  %w = "xtg.wgmma_wait"(%r) : (vector<8xf32>) -> vector<8xf32>
  return %w : vector<8xf32>
}

// CHECK-LABEL: func.func @warp(
// CHECK-COUNT-6: vector.bitcast {{.*}} : vector<4xf8E4M3FN> to vector<1xi32>
// CHECK: llvm.inline_asm {{.*}}"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {$0, $1, $2, $3}, {$8, $9, $10, $11}, {$12, $13}, {$0, $1, $2, $3};", "=&f,=&f,=&f,=&f,0,1,2,3,r,r,r,r,r,r"
// CHECK-NOT: xtg
func.func @warp(%acc: vector<4xf32>, %a: vector<16xf8E4M3FN>, %b: vector<8xf8E4M3FN>) -> vector<4xf32> {
  %r = "xtg.mma"(%a, %b, %acc) {m = 16 : i64, n = 8 : i64, k = 32 : i64, types = ["f8E4M3FN", "f8E4M3FN"]} : (vector<16xf8E4M3FN>, vector<8xf8E4M3FN>, vector<4xf32>) -> vector<4xf32>
  return %r : vector<4xf32>
}

// Sums of bytes wrap: no .satfinite.
// CHECK-LABEL: func.func @bytes(
// CHECK: llvm.inline_asm {{.*}}"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {$0, $1, $2, $3}, {$8, $9, $10, $11}, {$12, $13}, {$0, $1, $2, $3};", "=&r,=&r,=&r,=&r,0,1,2,3,r,r,r,r,r,r"
// CHECK-NOT: xtg
func.func @bytes(%acc: vector<4xi32>, %a: vector<16xi8>, %b: vector<8xi8>) -> vector<4xi32> {
  %r = "xtg.mma"(%a, %b, %acc) {m = 16 : i64, n = 8 : i64, k = 32 : i64, types = ["ui8", "i8"]} : (vector<16xi8>, vector<8xi8>, vector<4xi32>) -> vector<4xi32>
  return %r : vector<4xi32>
}

// Bytes have no scales and no transposes.
// CHECK-LABEL: func.func @warpgroup_of_bytes(
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.u8 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, p;
// CHECK-SAME: "=&r,=&r,=&r,=&r,=&r,=&r,=&r,=&r,0,1,2,3,4,5,6,7,l,l"
func.func @warpgroup_of_bytes(%acc: vector<8xi32>, %a: memref<8192xi8, #gpu.address_space<workgroup>>, %b: memref<2048xi8, #gpu.address_space<workgroup>>, %at: index) -> vector<8xi32> {
  %r = "xtg.wgmma"(%acc, %a, %at, %b, %at) {m = 64 : i64, n = 16 : i64, k = 32 : i64, types = ["i8", "ui8"],
    a = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 32>},
    b = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 32>}}
    : (vector<8xi32>, memref<8192xi8, #gpu.address_space<workgroup>>, index, memref<2048xi8, #gpu.address_space<workgroup>>, index) -> vector<8xi32>
  return %r : vector<8xi32>
}

// Zeros of A (what a mask hides) and the zeros that the sums begin with are no reason to share a register: the second
// instruction would read sums as A.
// CHECK-LABEL: func.func @held(
// CHECK: llvm.inline_asm has_side_effects
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, b, p, 1, 1, 0;
// CHECK-SAME: {$0, $1, $2, $3}, {$12, $13, $14, $15}, b
// CHECK-SAME: "=&f,=&f,=&f,=&f,0,1,2,3,r,r,r,r,r,r,r,r,l"
func.func @held(%b: memref<2048xf16, #gpu.address_space<workgroup>>, %at: index) -> vector<4xf32> {
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %a = arith.constant dense<0.0> : vector<16xf16>
  %r = "xtg.wgmma"(%zero, %a, %b, %at) {m = 64 : i64, n = 8 : i64, k = 16 : i64, types = ["f16", "f16"],
    b = {blocks = 0 : i64, near_k = true, row = 64 : i64, rows = 512 : i64, steps = array<i64: 0, 16>}}
    : (vector<4xf32>, vector<16xf16>, memref<2048xf16, #gpu.address_space<workgroup>>, index) -> vector<4xf32>
  return %r : vector<4xf32>
}

// f32 is read as tf32, from rows along k; no operand is transposed.
// CHECK-LABEL: func.func @tf32(
// CHECK: wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, p, 1, 1;
func.func @tf32(%acc: vector<8xf32>, %a: memref<2048xf32, #gpu.address_space<workgroup>>, %b: memref<512xf32, #gpu.address_space<workgroup>>, %at: index) -> vector<8xf32> {
  %r = "xtg.wgmma"(%acc, %a, %at, %b, %at) {m = 64 : i64, n = 16 : i64, k = 8 : i64, types = ["f32", "f32"],
    a = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 8>},
    b = {blocks = 0 : i64, near_k = true, row = 128 : i64, rows = 1024 : i64, steps = array<i64: 0, 8>}}
    : (vector<8xf32>, memref<2048xf32, #gpu.address_space<workgroup>>, index, memref<512xf32, #gpu.address_space<workgroup>>, index) -> vector<8xf32>
  %w = "xtg.wgmma_wait"(%r) : (vector<8xf32>) -> vector<8xf32>
  return %w : vector<8xf32>
}

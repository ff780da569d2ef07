// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure-tile" | filecheck %s --check-prefixes=CHECK,GROUPS
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=configure-tile" | filecheck %s --check-prefixes=CHECK,WAVES

// Operands that are loaded in whole blocks are for instructions of warpgroups, where a chip has these.
// CHECK-LABEL: func.func @product(
// GROUPS-SAME: gpu = {stages = 6 : i64, threads = 256 : i64, warpgroup = 1 : i64}
// WAVES-SAME: gpu = {stages = 2 : i64, threads = 256 : i64}
func.func @product(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<128x128xf32>
  %n = memref.dim %a, %c1 : memref<?x?xf16>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<128x128xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [128, 64]} : (memref<?x?xf16>, f16, index, index) -> vector<128x64xf16>
    %y = "tile.load"(%b, %zero, %k, %c0) {shape = [64, 128]} : (memref<?x?xf16>, f16, index, index) -> vector<64x128xf16>
    %r = "tile.contract"(%x, %y, %acc) : (vector<128x64xf16>, vector<64x128xf16>, vector<128x128xf32>) -> vector<128x128xf32>
    scf.yield %r : vector<128x128xf32>
  }
  "tile.store"(%s, %c, %c0, %c0) : (vector<128x128xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// The left operand of the second product is what the first one made, in registers (attention).
// CHECK-LABEL: func.func @attention(
// GROUPS-SAME: gpu = {stages = 2 : i64, threads = 256 : i64, warpgroup = 1 : i64}
// WAVES-SAME: gpu = {stages = 2 : i64, threads = 128 : i64}
func.func @attention(%q: memref<?x?xf16>, %k: memref<?x?xf16>, %o: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<128x64xf32>
  %n = memref.dim %k, %c0 : memref<?x?xf16>
  %x = "tile.load"(%q, %zero, %c0, %c0) {shape = [128, 64]} : (memref<?x?xf16>, f16, index, index) -> vector<128x64xf16>
  %s = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<128x64xf32>) {
    %y = "tile.load"(%k, %zero, %i, %c0) {shape = [64, 64]} : (memref<?x?xf16>, f16, index, index) -> vector<64x64xf16>
    %t = "tile.transpose"(%y) {order = [1, 0]} : (vector<64x64xf16>) -> vector<64x64xf16>
    %p = "tile.contract"(%x, %t, %none) : (vector<128x64xf16>, vector<64x64xf16>, vector<128x64xf32>) -> vector<128x64xf32>
    %e = math.exp %p : vector<128x64xf32>
    %w = arith.truncf %e : vector<128x64xf32> to vector<128x64xf16>
    %r = "tile.contract"(%w, %y, %acc) : (vector<128x64xf16>, vector<64x64xf16>, vector<128x64xf32>) -> vector<128x64xf32>
    scf.yield %r : vector<128x64xf32>
  }
  "tile.store"(%s, %o, %c0, %c0) : (vector<128x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// As many workgroups as a chip's cores have room for update copies of what is updated only.
// CHECK-LABEL: func.func @tally(
// GROUPS-SAME: gpu = {persistent = 264 : i64, private = 16384 : i64, threads = 512 : i64}
// WAVES-SAME: gpu = {persistent = 608 : i64, private = 8192 : i64, threads = 512 : i64}
func.func @tally(%y: memref<?xi32>) attributes {tile.grid = ["n"]} {
  %one = arith.constant dense<1> : vector<4096xi32>
  %all = arith.constant dense<true> : vector<4096xi1>
  %p = "tile.iota"() {size = 4096, dtype = index} : () -> vector<4096xindex>
  %old = "tile.atomic"(%one, %y, %all, %p) {kind = "add"} : (vector<4096xi32>, memref<?xi32>, vector<4096xi1>, vector<4096xindex>) -> vector<4096xi32>
  return
}

// Four instances of a warp, two where a thread has 32 elements of what is reduced, share a workgroup; loops load a step ahead. Where
// a row is one step, 32 warps of a core shall have registers.
// CHECK-LABEL: func.func @row(
// GROUPS-SAME: gpu = {instances = 2 : i64, resident = 32 : i64, threads = 32 : i64}
// WAVES-SAME: gpu = {instances = 4 : i64, threads = 64 : i64}
func.func @row(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {tile.grid = ["n"]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %i = "tile.program_id"() {axis = 0} : () -> index
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %s = "tile.reduce"(%t) {kind = "sum", axes = [1]} : (vector<1x1024xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

// No such registers where more tiles of the row are wanted at a time.
// CHECK-LABEL: func.func @many(
// GROUPS-SAME: gpu = {instances = 2 : i64, threads = 32 : i64}
func.func @many(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %n: memref<?xf32>) attributes {tile.grid = ["n"]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %i = "tile.program_id"() {axis = 0} : () -> index
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %a = math.sqrt %t : vector<1x1024xf32>
  %b = math.exp %t : vector<1x1024xf32>
  %c = math.sin %t : vector<1x1024xf32>
  %d = math.cos %t : vector<1x1024xf32>
  %s = "tile.reduce"(%t) {kind = "sum", axes = [1]} : (vector<1x1024xf32>) -> vector<1xf32>
  %e = arith.addf %a, %b : vector<1x1024xf32>
  %f = arith.addf %c, %d : vector<1x1024xf32>
  %g = arith.mulf %e, %f : vector<1x1024xf32>
  "tile.store"(%s, %n, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  "tile.store"(%g, %y, %i, %c0) : (vector<1x1024xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// Several warps where a row is longer, with 16 elements a thread, and 512 threads at most.
// CHECK-LABEL: func.func @long_row(
// CHECK-SAME: gpu = {threads = 512 : i64}
func.func @long_row(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {tile.grid = ["n"]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %i = "tile.program_id"() {axis = 0} : () -> index
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 16384]} : (memref<?x?xf32>, f32, index, index) -> vector<1x16384xf32>
  %s = "tile.reduce"(%t) {kind = "sum", axes = [1]} : (vector<1x16384xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

// What the program says stays.
// CHECK-LABEL: func.func @said(
// CHECK-SAME: gpu = {threads = 64 : i64}
func.func @said(%x: memref<?xf32>) attributes {tile.grid = [1], xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : vector<4096xf32>
  "tile.store"(%t, %x, %c0) : (vector<4096xf32>, memref<?xf32>, index) -> ()
  return
}

// CHECK-LABEL: func.func @rows(
// GROUPS-SAME: gpu = {instances = 4 : i64, stages = 2 : i64, threads = 32 : i64}
// WAVES-SAME: gpu = {instances = 4 : i64, stages = 2 : i64, threads = 64 : i64}
func.func @rows(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {tile.grid = ["n"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1x256xf32>
  %i = "tile.program_id"() {axis = 0} : () -> index
  %sum = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %none) -> (vector<1x256xf32>) {
    %t = "tile.load"(%x, %zero, %i, %k) {shape = [1, 256]} : (memref<?x?xf32>, f32, index, index) -> vector<1x256xf32>
    %a = arith.addf %acc, %t : vector<1x256xf32>
    scf.yield %a : vector<1x256xf32>
  }
  %s = "tile.reduce"(%sum) {kind = "sum", axes = [1]} : (vector<1x256xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

// Rows that are reduced and added up, by few instances: more threads have each than would a row alone.
// CHECK-LABEL: func.func @sums_of_rows(
// CHECK-SAME: gpu = {stages = 2 : i64, threads = 128 : i64}
func.func @sums_of_rows(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {tile.grid = ["n"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1x1024xf32>
  %i = "tile.program_id"() {axis = 0} : () -> index
  %sum = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %none) -> (vector<1x1024xf32>) {
    %t = "tile.load"(%x, %zero, %k, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
    %s = "tile.reduce"(%t) {kind = "sum", axes = [1]} : (vector<1x1024xf32>) -> vector<1xf32>
    %u = "tile.reshape"(%s) {shape = [1, 1]} : (vector<1xf32>) -> vector<1x1xf32>
    %r = "tile.broadcast"(%u) {shape = [1, 1024]} : (vector<1x1xf32>) -> vector<1x1024xf32>
    %m = arith.mulf %r, %t : vector<1x1024xf32>
    %a = arith.addf %acc, %m : vector<1x1024xf32>
    scf.yield %a : vector<1x1024xf32>
  }
  "tile.store"(%sum, %y, %i, %c0) : (vector<1x1024xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

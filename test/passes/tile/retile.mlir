// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), retile, mlir(canonicalize, cse)" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4,cores=64 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=MANY
// RUN: %xcc_opt %s --target=cpu --chip=znver4 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=DOT
// RUN: %xcc_opt %s --target=cpu --chip=sapphirerapids "--pass-pipeline=lower-tile, mlir(canonicalize, cse), retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=TILE

// A row is read once for its maximum and once for the exponentials, which the loops of their sum keep: the quotient needs
// them, too. Each loop is one of whole pieces, which end where the row does, and one of what is left, behind masks.
// Reductions take two pieces at a time; a maximum is carried with a NaN that was met, by a comparison of two halves, not by
// operations that tell NaN in each step.
// CHECK-LABEL: func.func @softmax(
// CHECK: scf.forall
// CHECK: %[[REST:.*]] = arith.remui
// CHECK: %[[END:.*]] = arith.subi %{{.*}}, %[[REST]]
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c64 {{.*}} -> (vector<32xf32>, vector<16xf32>, vector<32xf32>, vector<16xf32>)
// CHECK: %[[X:.*]] = vector.load %arg0[{{.*}} : memref<?x?xf32>, vector<32xf32>
// CHECK: %[[LOW:.*]] = vector.shuffle %[[X]]
// CHECK: %[[HIGH:.*]] = vector.shuffle %[[X]]
// CHECK: %[[MORE:.*]] = arith.cmpf ogt, %[[X]], %[[TOP:.*]] :
// CHECK: arith.select %[[MORE]], %[[X]], %[[TOP]]
// CHECK: arith.cmpf uno, %[[LOW]], %[[HIGH]] : vector<16xf32>
// CHECK: scf.for %{{.*}} = %[[END]] to %c1024 step %c64
// CHECK: vector.maskedload {{.*}} into vector<32xf32>
// CHECK: arith.cmpf ogt
// CHECK-NOT: arith.maximumf
// CHECK: %[[KEPT:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: scf.for {{.*}} step %c64 {{.*}} -> (vector<32xf32>, vector<32xf32>)
// CHECK: vector.load %arg0
// CHECK: %[[E:.*]] = math.exp {{.*}} : vector<32xf32>
// CHECK: vector.store %[[E]], %[[KEPT]]
// CHECK: arith.addf %{{.*}}, %[[E]]
// CHECK: scf.for {{.*}} step %c64 {{.*}} -> (vector<32xf32>, vector<32xf32>)
// CHECK: vector.maskedload
// CHECK: %[[E:.*]] = math.exp {{.*}} : vector<32xf32>
// CHECK: vector.store %[[E]], %[[KEPT]]
// CHECK: arith.addf %{{.*}}, %[[E]]
// CHECK: scf.for {{.*}} step %c32 {
// CHECK: vector.load %[[KEPT]]
// CHECK: arith.divf
// CHECK: vector.store %{{.*}}, %arg1
// CHECK: scf.for
// CHECK: vector.maskedstore
func.func @softmax(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"}) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %t = "tile.load"(%x, %low, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %m = "tile.reduce"(%t) {axes = [0, 1], kind = "max"} : (vector<1x1024xf32>) -> f32
  %mb = "tile.broadcast"(%m) {shape = [1, 1024]} : (f32) -> vector<1x1024xf32>
  %d = arith.subf %t, %mb : vector<1x1024xf32>
  %e = math.exp %d : vector<1x1024xf32>
  %s = "tile.reduce"(%e) {axes = [0, 1], kind = "sum"} : (vector<1x1024xf32>) -> f32
  %sb = "tile.broadcast"(%s) {shape = [1, 1024]} : (f32) -> vector<1x1024xf32>
  %q = arith.divf %e, %sb : vector<1x1024xf32>
  "tile.store"(%q, %y, %i, %c0) : (vector<1x1024xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// What is cheap is computed again where it is needed, and a mask of places is free: whole pieces have none.
// CHECK-LABEL: func.func @away(
// CHECK-NOT: memref.alloca
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>)
// CHECK: %[[X:.*]] = vector.load %arg0
// CHECK: %[[D:.*]] = arith.subf %[[X]]
// CHECK: arith.mulf %[[D]], %[[D]]
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>)
// CHECK: vector.maskedload
// CHECK: scf.for
// CHECK: vector.load %arg0
// CHECK: arith.subf
// CHECK-NOT: memref.alloca
// CHECK: vector.maskedstore
func.func @away(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32>, %a: f32, %n: i64) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<1x1024xf32>
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %ab = "tile.broadcast"(%a) {shape = [1, 1024]} : (f32) -> vector<1x1024xf32>
  %d = arith.subf %t, %ab : vector<1x1024xf32>
  %line = "tile.iota"() {dtype = "i64", size = 1024} : () -> vector<1024xi64>
  %lines = "tile.reshape"(%line) {shape = [1, 1024]} : (vector<1024xi64>) -> vector<1x1024xi64>
  %end = "tile.broadcast"(%n) {shape = [1, 1024]} : (i64) -> vector<1x1024xi64>
  %below = arith.cmpi slt, %lines, %end : vector<1x1024xi64>
  %away = arith.select %below, %d, %none : vector<1x1024xi1>, vector<1x1024xf32>
  %sq = arith.mulf %away, %away : vector<1x1024xf32>
  %s = "tile.reduce"(%sq) {axes = [0, 1], kind = "sum"} : (vector<1x1024xf32>) -> f32
  %sb = "tile.broadcast"(%s) {shape = [1, 1024]} : (f32) -> vector<1x1024xf32>
  %q = arith.mulf %away, %sb : vector<1x1024xf32>
  "tile.store"(%q, %y, %i, %c0) : (vector<1x1024xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// A running sum goes from piece to piece in the loops of the store that needs it: four steps in each register of 16, then
// what the registers before have come to.
// CHECK-LABEL: func.func @running(
// CHECK-NOT: memref.alloca
// CHECK: scf.for %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK: %[[X:.*]] = vector.load %arg0
// CHECK: %[[LOW:.*]] = vector.shuffle %[[X]], %{{.*}} [0, 1, 2
// CHECK: %[[ONE:.*]] = vector.shuffle %{{.*}}, %[[LOW]] [15, 16, 17
// CHECK: arith.addf %[[ONE]], %[[LOW]]
// CHECK-COUNT-3: arith.addf %{{.*}} : vector<16xf32>
// CHECK: vector.shuffle {{.*}} [15, 15, 15
// CHECK: arith.addf %[[BEFORE]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[BEFORE]]
// CHECK: arith.addf %[[NEXT]]
// CHECK: vector.store %{{.*}}, %arg1
// CHECK: scf.yield
// CHECK: scf.for {{.*}} -> (vector<16xf32>)
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @running(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32>) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %s = "tile.scan"(%t) {kind = "sum"} : (vector<1x1024xf32>) -> vector<1x1024xf32>
  %d = arith.addf %s, %t : vector<1x1024xf32>
  "tile.store"(%d, %y, %i, %c0) : (vector<1x1024xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// A product's sums stay where the loop carries them: operands are packed, the right one in panels of 32 columns, 12 rows of
// sums go over k in registers, as far as rows of `c` reach, what is left in blocks of 4. The two vectors of a row are made
// one by one.
// CHECK-LABEL: func.func @product(
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<4096xf32>
// CHECK: scf.for
// CHECK: memref.alloca() {{.*}} : memref<2048xf32>
// CHECK: %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<2048xf32>
// CHECK: vector.store %{{.*}}, %[[PANELS]][%[[AT:.*]]] :
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c1024
// CHECK: vector.store %{{.*}}, %[[PANELS]][%[[NEXT]]] :
// CHECK: scf.for {{.*}} = %c0 to %[[WHOLE:.*]] step %c12
// CHECK-COUNT-12: vector.load %[[SUMS]]
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-12: math.fma {{.*}} : vector<32xf32>
// CHECK-COUNT-12: vector.store %{{.*}}, %[[SUMS]]
// CHECK: scf.for {{.*}} = %[[WHOLE]] to %{{.*}} step %c4
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-4: math.fma {{.*}} : vector<32xf32>
// CHECK-NOT: math.fma
// CHECK-COUNT-4: vector.store %{{.*}}, %[[SUMS]]
// CHECK-COUNT-2: vector.store %{{.*}}, %arg2
// CHECK-NOT: vector.store
// CHECK-COUNT-2: vector.maskedstore
func.func @product(%a: memref<?x?xf32> {tile.name = "a"}, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %n = memref.dim %a, %c1 : memref<?x?xf32>
  %s = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %none) -> (vector<64x64xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [64, 32]} : (memref<?x?xf32>, f32, index, index) -> vector<64x32xf32>
    %y = "tile.load"(%b, %zero, %k, %c0) {shape = [32, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<32x64xf32>
    %r = "tile.contract"(%x, %y, %acc) : (vector<64x32xf32>, vector<32x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
    scf.yield %r : vector<64x64xf32>
  }
  "tile.store"(%s, %c, %c0, %c0) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// A buffer that is updated in one way only: a chunk of instances updates a copy, which it adds to the buffer at its end.
// CHECK-LABEL: func.func @count(
// A chunk of all instances has no need of atomics.
// CHECK: scf.forall (%{{.*}}) in (%{{.*}})
// CHECK: %[[SINGLE:.*]] = arith.cmpi sge
// CHECK: %[[COPY:.*]] = memref.alloca() {{.*}} : memref<65536xi32>
// CHECK: %[[USED:.*]] = arith.andi
// CHECK: scf.if %[[USED]]
// CHECK: vector.store %{{.*}}, %[[COPY]]
// CHECK: scf.for
// CHECK: scf.if %[[USED]]
// CHECK-NOT: memref.atomic_rmw
// CHECK: memref.store %{{.*}}, %[[COPY]]
// CHECK: } else {
// CHECK: scf.if %[[SINGLE]]
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: } else {
// CHECK: memref.atomic_rmw addi %{{.*}}, %arg1
// CHECK: scf.if %[[USED]]
// CHECK: memref.load %[[COPY]]
// CHECK: memref.atomic_rmw addi %{{.*}}, %arg1
func.func @count(%i: memref<?xi32>, %y: memref<?xi32>) attributes {tile.grid = ["n"]} {
  %zero = arith.constant 0 : i32
  %c64 = arith.constant 64 : index
  %id = "tile.program_id"() {axis = 0 : i64} : () -> index
  %at = arith.muli %id, %c64 : index
  %one = arith.constant dense<1> : vector<64xi32>
  %all = arith.constant dense<true> : vector<64xi1>
  %places = "tile.load"(%i, %zero, %at) {shape = [64]} : (memref<?xi32>, i32, index) -> vector<64xi32>
  %old = "tile.atomic"(%one, %y, %all, %places) {kind = "add"} : (vector<64xi32>, memref<?xi32>, vector<64xi1>, vector<64xi32>) -> vector<64xi32>
  return
}

// Rows of a table, by their numbers: the columns lie side by side, so that vectors of the copy are updated. Where there is
// no room for one, all instances are one chunk, and vectors of the table are; many cores update it by atomics.
// CHECK-LABEL: func.func @table(
// CHECK: %[[LARGE:.*]] = arith.cmpi sgt, %{{.*}}, %c65536
// CHECK: %[[EACH:.*]] = arith.select %[[LARGE]]
// CHECK: arith.ceildivui %{{.*}}, %[[EACH]]
// CHECK: %[[COPY:.*]] = memref.alloca() {{.*}} : memref<65536xf32>
// CHECK-NOT: memref<64xindex>
// CHECK: %[[OLD:.*]] = vector.maskedload %[[COPY]][%[[AT:.*]]], %[[MASK:.*]], %{{.*}} : memref<65536xf32>, vector<16xi1>
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : vector<16xf32>
// CHECK: vector.maskedstore %[[COPY]][%[[AT]]], %[[MASK]], %[[NEW]]
// CHECK: } else {
// CHECK: scf.if %[[LARGE]]
// CHECK: vector.maskedstore %[[TABLE:[a-z_0-9]*]][
// CHECK: } else {
// CHECK: memref.atomic_rmw addf %{{.*}}, %{{.*}}
// MANY-LABEL: func.func @table(
// MANY: vector.maskedstore
// MANY-NOT: vector.maskedstore
// MANY: memref.atomic_rmw addf
// MANY-LABEL: func.func @numbers(
func.func @table(%i: memref<?xi32>, %x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {tile.grid = ["n"]} {
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %id = "tile.program_id"() {axis = 0 : i64} : () -> index
  %at = arith.muli %id, %c4 : index
  %all = arith.constant dense<true> : vector<4x16xi1>
  %t = "tile.load"(%x, %none, %at, %c0) {shape = [4, 16]} : (memref<?x?xf32>, f32, index, index) -> vector<4x16xf32>
  %n = "tile.load"(%i, %zero, %at) {shape = [4]} : (memref<?xi32>, i32, index) -> vector<4xi32>
  %row = "tile.reshape"(%n) {shape = [4, 1]} : (vector<4xi32>) -> vector<4x1xi32>
  %rows = "tile.broadcast"(%row) {shape = [4, 16]} : (vector<4x1xi32>) -> vector<4x16xi32>
  %line = "tile.iota"() {size = 16, dtype = index} : () -> vector<16xindex>
  %columns = "tile.broadcast"(%line) {shape = [4, 16]} : (vector<16xindex>) -> vector<4x16xindex>
  %old = "tile.atomic"(%t, %y, %all, %rows, %columns) {kind = "add"} : (vector<4x16xf32>, memref<?x?xf32>, vector<4x16xi1>, vector<4x16xi32>, vector<4x16xindex>) -> vector<4x16xf32>
  return
}

// Whose old values are used: each update is atomic.
// CHECK-LABEL: func.func @numbers(
// CHECK-NOT: memref<65536xi32>
// CHECK: memref.atomic_rmw addi %{{.*}}, %arg1
func.func @numbers(%i: memref<?xi32>, %y: memref<?xi32>) attributes {tile.grid = ["n"]} {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1> : vector<64xi32>
  %all = arith.constant dense<true> : vector<64xi1>
  %places = "tile.load"(%i, %zero, %c0) {shape = [64]} : (memref<?xi32>, i32, index) -> vector<64xi32>
  %old = "tile.atomic"(%one, %y, %all, %places) {kind = "add"} : (vector<64xi32>, memref<?xi32>, vector<64xi1>, vector<64xi32>) -> vector<64xi32>
  "tile.store"(%old, %i, %c0) : (vector<64xi32>, memref<?xi32>, index) -> ()
  return
}

// A comparison of places with an end is a mask of the first lanes, and none where the loop ends with the end.
// CHECK-LABEL: func.func @places(
// CHECK: %[[END:.*]] = arith.subi
// CHECK: scf.for %{{.*}} = %c0 to %[[END]]
// CHECK-NOT: arith.cmpi
// CHECK: vector.store
// CHECK: scf.for %{{.*}} = %[[END]] to %c1024
// CHECK: arith.cmpi sgt, %{{.*}} : vector<32xi32>
// CHECK-NOT: vector<32xindex>
// CHECK: vector.maskedstore
func.func @places(%x: memref<?xf32> {tile.name = "x"}, %n: i64 {tile.name = "n"}) attributes {tile.grid = [2]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1024xf32>
  %one = arith.constant dense<1.0> : vector<1024xf32>
  %line = "tile.iota"() {dtype = "i64", size = 1024} : () -> vector<1024xi64>
  %end = "tile.broadcast"(%n) {shape = [1024]} : (i64) -> vector<1024xi64>
  %below = arith.cmpi slt, %line, %end : vector<1024xi64>
  %t = arith.select %below, %one, %zero : vector<1024xi1>, vector<1024xf32>
  "tile.store"(%t, %x, %c0) : (vector<1024xf32>, memref<?xf32>, index) -> ()
  return
}

// A loop that counts nothing carries a tile at one place: the condition passes it on there, and a turn adds to it there.
// A place that begins at 0 and grows is not negative: whole pieces are read without a mask.
// CHECK-LABEL: func.func @until(
// CHECK: %[[SUM:.*]] = memref.alloca() {{.*}} : memref<64xf32>
// CHECK-NOT: memref.alloca
// CHECK: scf.while
// CHECK-NOT: vector.store
// CHECK: } do {
// CHECK: vector.load %[[SUM]]
// CHECK: vector.load %arg0
// CHECK: vector.store %{{.*}}, %[[SUM]]
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @until(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile.grid = [2]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %zero = arith.constant dense<0.0> : vector<64xf32>
  %sums:2 = scf.while (%i = %c0, %sum = %zero) : (index, vector<64xf32>) -> (index, vector<64xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %sum : index, vector<64xf32>
  } do {
  ^bb0(%i: index, %sum: vector<64xf32>):
    %t = "tile.load"(%x, %none, %i) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
    %next = arith.addf %sum, %t : vector<64xf32>
    %j = arith.addi %i, %c64 : index
    scf.yield %j, %next : index, vector<64xf32>
  }
  "tile.store"(%sums#1, %y, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

// Pairs of steps by an instruction where the chip has one: rows of the right operand are interleaved in its panels. Where it
// has tile registers, the packed operands are tiles of theirs, and the sums are memory; the left one is read where it lies
// if the whole tile does.
// TILE-LABEL: func.func @pairs(
// TILE: memref.extract_strided_metadata %arg0
// TILE: %[[ROW:.*]] = arith.select %[[INSIDE:.*]], %{{.*}}, %c16
// TILE: %[[FOUND:.*]] = scf.if %[[INSIDE]] -> (memref<bf16>) {
// TILE-NEXT: scf.yield %{{.*}} : memref<bf16>
// TILE: } else {
// TILE: vector.maskedload %arg0
// TILE: vector.interleave {{.*}} : vector<32xbf16>
// TILE-DAG: %[[LEFT:.*]] = memref.reinterpret_cast %[[FOUND]] to offset: [0], sizes: [8, 8, 2], strides: [%[[ROW]], 2, 1]
// TILE-DAG: %[[RIGHT:.*]] = memref.reinterpret_cast {{.*}} sizes: [8, 32, 2], strides: [64, 2, 1]
// TILE-DAG: %[[SUMS:.*]] = memref.reinterpret_cast {{.*}} sizes: [8, 32], strides: [32, 1]
// TILE: vector.transfer_read %[[LEFT]]
// TILE: vector.transfer_read %[[RIGHT]]
// TILE: vector.contract {{.*}} vector<8x8x2xbf16>, vector<8x32x2xbf16> into vector<8x32xf32>
// TILE-NEXT: vector.transfer_write %{{.*}}, %[[SUMS]]
// DOT-LABEL: func.func @pairs(
// DOT: vector.interleave {{.*}} : vector<32xbf16>
// DOT: scf.for %[[K:.*]] = %c0 to %c16 step %c2 iter_args
// DOT: vector.load {{.*}} vector<64xbf16>
// DOT: vector.load {{.*}} vector<2xbf16>
// DOT-COUNT-16: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// DOT-NOT: math.fma
func.func @pairs(%a: memref<?x?xbf16> {tile.name = "a"}, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : vector<8x32xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [8, 16]} : (memref<?x?xbf16>, bf16, index, index) -> vector<8x16xbf16>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [16, 32]} : (memref<?x?xbf16>, bf16, index, index) -> vector<16x32xbf16>
  %r = "tile.contract"(%x, %y, %none) : (vector<8x16xbf16>, vector<16x32xbf16>, vector<8x32xf32>) -> vector<8x32xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<8x32xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// Signed bytes by an instruction that takes the left ones as unsigned: they are more by 128 then, and the ninth row of sums,
// of a row of 128s, is taken away at the end.
// DOT-LABEL: func.func @bytes(
// DOT: scf.for %[[K:.*]] = %c0 to %c16 step %c4 iter_args
// DOT-COUNT-8: arith.xori %{{.*}}, %c-2139062144_i32
// DOT-COUNT-18: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// DOT-NOT: llvm.call_intrinsic
// DOT-COUNT-16: arith.subi %{{.*}} : vector<16xi32>
// DOT-NOT: arith.muli %{{.*}} : vector
func.func @bytes(%a: memref<?x?xi8> {tile.name = "a"}, %b: memref<?x?xi8>, %c: memref<?x?xi32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %none = arith.constant dense<0> : vector<8x32xi32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [8, 16]} : (memref<?x?xi8>, i8, index, index) -> vector<8x16xi8>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [16, 32]} : (memref<?x?xi8>, i8, index, index) -> vector<16x32xi8>
  %r = "tile.contract"(%x, %y, %none) : (vector<8x16xi8>, vector<16x32xi8>, vector<8x32xi32>) -> vector<8x32xi32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<8x32xi32>, memref<?x?xi32>, index, index) -> ()
  return
}

// A bitonic network: 16 lanes are exchanged within a vector that is loaded once for the blocks of 2 to 16 (1, 2, 3 and 4
// steps), then vectors on both sides of a border, one of them turned, those that lie apart, and what is nearer within.
// DOT-LABEL: func.func @sorted(
// CHECK-LABEL: func.func @sorted(
// CHECK: vector.store %{{.*}}, %[[ROW:[^ ]+]][
// CHECK: scf.for
// CHECK: vector.load %[[ROW]][
// CHECK-COUNT-10: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK: vector.store %{{.*}}, %[[ROW]][
// CHECK: scf.while
// CHECK: scf.for
// CHECK-COUNT-2: vector.load %[[ROW]][
// CHECK: vector.shuffle
// CHECK-NEXT: arith.minsi %{{.*}} : vector<16xi32>
// CHECK-NEXT: arith.maxsi %{{.*}} : vector<16xi32>
// CHECK-NEXT: vector.store %{{.*}}, %[[ROW]][
// CHECK-NEXT: vector.shuffle
// CHECK-NEXT: vector.store %{{.*}}, %[[ROW]][
// CHECK: scf.while
// CHECK-COUNT-2: vector.load %[[ROW]][
// CHECK-NOT: vector.shuffle
// CHECK: arith.minsi
// CHECK-NOT: vector.shuffle
// CHECK: vector.store %{{.*}}, %[[ROW]][
// CHECK: vector.load %[[ROW]][
// CHECK-COUNT-4: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK: vector.store %{{.*}}, %[[ROW]][
// CHECK-NOT: memref.load
func.func @sorted(%x: memref<?x?xi32>, %y: memref<?x?xi32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 7 : i32
  %t = "tile.load"(%x, %none, %c0, %c0) {shape = [1, 512]} : (memref<?x?xi32>, i32, index, index) -> vector<1x512xi32>
  %s = "tile.sort"(%t) {keep = 0 : i64} : (vector<1x512xi32>) -> vector<1x512xi32>
  "tile.store"(%s, %y, %c0, %c0) : (vector<1x512xi32>, memref<?x?xi32>, index, index) -> ()
  return
}

// Of a product whose last rows and columns are not stored no blocks of sums are made behind what is.
// CHECK-LABEL: func.func @few(
// CHECK: scf.for %[[J:.*]] = %c0 to %c64 step %c32
// CHECK: %[[ALONG:.*]] = arith.cmpi slt, %[[J]], %[[COLUMNS:.*]] :
// CHECK-NEXT: scf.if %[[ALONG]] {
// CHECK: %[[ROWS:.*]] = arith.minsi
// CHECK: %[[REST:.*]] = arith.remui %[[ROWS]], %c12
// CHECK: %[[WHOLE:.*]] = arith.subi %[[ROWS]], %[[REST]]
// CHECK: scf.for {{.*}} = %c0 to %[[WHOLE]] step %c12
// CHECK: math.fma
// CHECK: scf.for {{.*}} = %[[WHOLE]] to %[[ROWS]] step %c4
// CHECK: math.fma
func.func @few(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [64, 16]} : (memref<?x?xf32>, f32, index, index) -> vector<64x16xf32>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<16x64xf32>
  %r = "tile.contract"(%x, %y, %none) : (vector<64x16xf32>, vector<16x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// Nor behind those that a mask of places takes of it, though sums go over all of what it makes.
// CHECK-LABEL: func.func @chosen(
// CHECK: scf.forall (%[[FIRST:.*]]) in (9)
// CHECK: %[[END:.*]] = arith.subi %[[N:.*]], %[[FIRST]]
// CHECK: scf.for %[[J:.*]] = %c0 to %c64 step %c32
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi slt, %[[J]], %[[END]]
// CHECK-NEXT: scf.if %[[IN]] {
// CHECK: math.fma
func.func @chosen(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?xf32>) attributes {tile.grid = [9]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %b, %c1 : memref<?x?xf32>
  %first = "tile.program_id"() {axis = 0 : i64} : () -> index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [64, 16]} : (memref<?x?xf32>, f32, index, index) -> vector<64x16xf32>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<16x64xf32>
  %r = "tile.contract"(%x, %y, %none) : (vector<64x16xf32>, vector<16x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
  %i = "tile.iota"() {size = 64, dtype = index} : () -> vector<64xindex>
  %o = "tile.broadcast"(%first) {shape = [64]} : (index) -> vector<64xindex>
  %p = arith.addi %i, %o : vector<64xindex>
  %e = "tile.broadcast"(%n) {shape = [64]} : (index) -> vector<64xindex>
  %m = arith.cmpi slt, %p, %e : vector<64xindex>
  %w = "tile.broadcast"(%m) {shape = [64, 64]} : (vector<64xi1>) -> vector<64x64xi1>
  %s = arith.select %w, %r, %none : vector<64x64xi1>, vector<64x64xf32>
  %t = "tile.reduce"(%s) {axes = [1], kind = "sum"} : (vector<64x64xf32>) -> vector<64xf32>
  "tile.store"(%t, %c, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

// A left operand that is turned is read along its rows, and packed as columns.
// CHECK-LABEL: func.func @turned(
// CHECK: %[[COLUMNS:.*]] = memref.alloca() {{.*}} : memref<1024xf32>
// CHECK-NOT: vector.gather
// CHECK: %[[LINE:.*]] = vector.maskedload %arg0{{.*}} vector<32xf32>
// CHECK: vector.store %[[LINE]], %[[COLUMNS]]
// CHECK-NOT: vector.gather
// CHECK: memref.load %[[COLUMNS]]
// CHECK: math.fma
func.func @turned(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<16x64xf32>
  %t = "tile.transpose"(%x) {order = [1, 0]} : (vector<16x64xf32>) -> vector<64x16xf32>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<16x64xf32>
  %r = "tile.contract"(%t, %y, %none) : (vector<64x16xf32>, vector<16x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// Of rows of two the pieces lie along the rows, not along what is combined.
// CHECK-LABEL: func.func @rows_of_two(
// CHECK: vector.gather {{.*}} into vector<32xf32>
// CHECK: vector.gather {{.*}} into vector<32xf32>
// CHECK-NOT: vector<2x
// CHECK: vector.store {{.*}} vector<32xf32>
func.func @rows_of_two(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0, %c0) {shape = [64, 2]} : (memref<?x?xf32>, f32, index, index) -> vector<64x2xf32>
  %s = "tile.reduce"(%t) {axes = [1], kind = "sum"} : (vector<64x2xf32>) -> vector<64xf32>
  "tile.store"(%s, %y, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

// A right operand whose columns lie along k is read along them, and packed by transposes of registers: of elements, or of
// the groups of k that lie together. Loops of whole pieces have no masks.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<4096xf32>
// CHECK: scf.for {{.*}} step %c32 {
// CHECK: scf.for {{.*}} step %c16 {
// CHECK: scf.for {{.*}} step %c16 {
// CHECK-NOT: vector.gather
// CHECK-COUNT-16: vector.load %arg1{{.*}} : memref<?x?xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 16, 1, 17, 4, 20,
// CHECK-COUNT-16: vector.store {{.*}}, %[[PANELS]][{{.*}} : memref<4096xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} step %c16 {
// CHECK: vector.maskedload %arg1{{.*}} vector<16xf32>
// CHECK: math.fma
// TILE-LABEL: func.func @columns_of_groups(
// TILE-NOT: vector.gather
// TILE-COUNT-16: vector.load %arg1{{.*}} : memref<?x?xbf16>, vector<32xbf16>
// TILE: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// TILE: %[[WORDS:.*]] = vector.bitcast {{.*}} : vector<16xi32> to vector<32xbf16>
// TILE: vector.store %{{.*}} : memref<4096xbf16>, vector<32xbf16>
func.func @columns(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<16x64xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<16x64xf32>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
  %t = "tile.transpose"(%y) {order = [1, 0]} : (vector<64x64xf32>) -> vector<64x64xf32>
  %r = "tile.contract"(%x, %t, %none) : (vector<16x64xf32>, vector<64x64xf32>, vector<16x64xf32>) -> vector<16x64xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<16x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}
func.func @columns_of_groups(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : vector<16x64xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [16, 64]} : (memref<?x?xbf16>, bf16, index, index) -> vector<16x64xbf16>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [64, 64]} : (memref<?x?xbf16>, bf16, index, index) -> vector<64x64xbf16>
  %t = "tile.transpose"(%y) {order = [1, 0]} : (vector<64x64xbf16>) -> vector<64x64xbf16>
  %r = "tile.contract"(%x, %t, %none) : (vector<16x64xbf16>, vector<64x64xbf16>, vector<16x64xf32>) -> vector<16x64xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<16x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// Groups of a left operand that is turned are words: of each, the elements of as many rows are read, and transposed.
// TILE-LABEL: func.func @rows_of_groups(
// TILE-NOT: vector.gather
// TILE-COUNT-32: vector.load %arg0{{.*}} : memref<?x?xbf16>, vector<16xbf16>
// TILE: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// TILE: %[[WORDS:.*]] = vector.bitcast {{.*}} : vector<16xi32> to vector<32xbf16>
// TILE: vector.store %{{.*}} : memref<1024xbf16>, vector<32xbf16>
func.func @rows_of_groups(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : vector<16x32xf32>
  %x = "tile.load"(%a, %zero, %c0, %c0) {shape = [64, 16]} : (memref<?x?xbf16>, bf16, index, index) -> vector<64x16xbf16>
  %t = "tile.transpose"(%x) {order = [1, 0]} : (vector<64x16xbf16>) -> vector<16x64xbf16>
  %y = "tile.load"(%b, %zero, %c0, %c0) {shape = [64, 32]} : (memref<?x?xbf16>, bf16, index, index) -> vector<64x32xbf16>
  %r = "tile.contract"(%t, %y, %none) : (vector<16x64xbf16>, vector<64x32xbf16>, vector<16x32xf32>) -> vector<16x32xf32>
  "tile.store"(%r, %c, %c0, %c0) : (vector<16x32xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// A loop that begins with the sums that another one leaves keeps them in that one's place.
// CHECK-LABEL: func.func @left(
// CHECK: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<512xf32>
// CHECK: vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT: memref.alloca() {{.*}} : memref<512xf32>
// CHECK: math.fma
// CHECK: vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT: memref.alloca() {{.*}} : memref<512xf32>
// CHECK: math.fma
// CHECK: vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT: memref.alloca() {{.*}} : memref<512xf32>
// CHECK: vector.load %[[SUMS]]
// CHECK: vector.maskedstore %arg2
func.func @left(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c80 = arith.constant 80 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<16x32xf32>
  %s = scf.for %k = %c0 to %c64 step %c8 iter_args(%acc = %none) -> (vector<16x32xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [16, 8]} : (memref<?x?xf32>, f32, index, index) -> vector<16x8xf32>
    %y = "tile.load"(%b, %zero, %k, %c0) {shape = [8, 32]} : (memref<?x?xf32>, f32, index, index) -> vector<8x32xf32>
    %r = "tile.contract"(%x, %y, %acc) : (vector<16x8xf32>, vector<8x32xf32>, vector<16x32xf32>) -> vector<16x32xf32>
    scf.yield %r : vector<16x32xf32>
  }
  %t = scf.for %k = %c64 to %c80 step %c8 iter_args(%acc = %s) -> (vector<16x32xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [16, 8]} : (memref<?x?xf32>, f32, index, index) -> vector<16x8xf32>
    %y = "tile.load"(%b, %zero, %k, %c0) {shape = [8, 32]} : (memref<?x?xf32>, f32, index, index) -> vector<8x32xf32>
    %r = "tile.contract"(%x, %y, %acc) : (vector<16x8xf32>, vector<8x32xf32>, vector<16x32xf32>) -> vector<16x32xf32>
    scf.yield %r : vector<16x32xf32>
  }
  "tile.store"(%t, %c, %c0, %c0) : (vector<16x32xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

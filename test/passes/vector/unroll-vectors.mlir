// RUN: %xcc_opt %s --chip=znver4 --pass-pipeline="unroll-vectors{lanes=8 dot=vnni}, mlir(canonicalize, cse)" | filecheck %s

// CHECK-LABEL: func.func @pointwise
// CHECK-COUNT-4: vector.load {{.*}} : memref<2x12xf32>, vector<{{8|4}}xf32>
// CHECK-COUNT-2: arith.addf {{.*}} : vector<8xf32>
// CHECK-COUNT-4: vector.store
func.func @pointwise(%x: memref<2x12xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<2x12xf32>, vector<2x12xf32>
  %w = arith.addf %v, %v : vector<2x12xf32>
  vector.transfer_write %w, %x[%c0, %c0] {in_bounds = [true, true]} : vector<2x12xf32>, memref<2x12xf32>
  return
}

// A masked read never leaves the buffer.
// CHECK-LABEL: func.func @masked
// CHECK: vector.maskedload
// CHECK-NOT: vector.load
func.func @masked(%x: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.transfer_read %x[%c0], %pad, %m {in_bounds = [true]} : memref<?xf32>, vector<8xf32>
  %s = vector.multi_reduction <add>, %v, %pad [0] : vector<8xf32> to f32
  return %s : f32
}

// Short rows, one access together, become columns, which are added up: no lanes of one vector are.
// CHECK-LABEL: func.func @summed_rows
// CHECK: vector.load %{{.*}} : memref<8x3xf32>, vector<24xf32>
// CHECK-NOT: vector.reduction
// CHECK-COUNT-3: arith.addf {{.*}} : vector<8xf32>
// CHECK: vector.store
func.func @summed_rows(%x: memref<8x3xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : vector<8xf32>
  %v = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x3xf32>, vector<8x3xf32>
  %s = vector.multi_reduction <add>, %v, %one [1] : vector<8x3xf32> to vector<8xf32>
  vector.transfer_write %s, %y[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
  return
}

// A row without a lane that counts is stored, masked, to the first row's place: there is memory.
// CHECK-LABEL: func.func @masked_rows
// CHECK-SAME: %[[X:.*]]: memref<?x8xf32>, %[[I:.*]]: index, %[[N:.*]]: index
// CHECK: %[[ON:.*]] = arith.cmpi sgt, %[[N]], %c1
// CHECK: vector.maskedstore %[[X]][%[[I]],
// CHECK: %[[STEP:.*]] = arith.select %[[ON]], %{{.*}}, %{{.*}} : index
// CHECK: %[[ROW:.*]] = arith.addi %[[I]], %[[STEP]]
// CHECK: vector.maskedstore %[[X]][%[[ROW]],
func.func @masked_rows(%x: memref<?x8xf32>, %i: index, %n: index) {
  %v = arith.constant dense<1.0> : vector<2x8xf32>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = vector.create_mask %n, %c8 : vector<2x8xi1>
  vector.transfer_write %v, %x[%i, %c0], %m {in_bounds = [true, true]} : vector<2x8xf32>, memref<?x8xf32>
  return
}

// The loop carries one machine vector a row; scalars of the left operand are loaded where they are used.
// CHECK-LABEL: func.func @contract
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}) -> (vector<8xf32>, vector<8xf32>)
// CHECK: memref.load
// CHECK: vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK: vector.fma
// CHECK: memref.load
// CHECK: vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK: vector.fma
func.func @contract(%a: memref<2x9xf32>, %b: memref<9x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<2x8xf32>
  %r = scf.for %k = %c0 to %c9 step %c1 iter_args(%s = %zero) -> (vector<2x8xf32>) {
    %x = vector.transfer_read %a[%c0, %k], %pad {in_bounds = [true, true]} : memref<2x9xf32>, vector<2x1xf32>
    %y = vector.transfer_read %b[%k, %c0], %pad {in_bounds = [true, true]} : memref<9x8xf32>, vector<1x8xf32>
    %t = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                           affine_map<(m, n, k) -> (m, n)>],
                          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
         %x, %y, %s : vector<2x1xf32>, vector<1x8xf32> into vector<2x8xf32>
    scf.yield %t : vector<2x8xf32>
  }
  vector.transfer_write %r, %b[%c0, %c0] {in_bounds = [true, true]} : vector<2x8xf32>, memref<9x8xf32>
  return
}

// Groups of bytes: one load of a group a row, repeated along the lanes; the groups of the lanes in one load.
// CHECK-LABEL: func.func @grouped
// CHECK: scf.for
// CHECK: vector.load {{.*}} : memref<2x64xi8>, vector<4xi8>
// CHECK: vector.bitcast {{.*}} : vector<4xi8> to vector<1xi32>
// CHECK: vector.load {{.*}} : memref<16x8x4xi8>, vector<32xi8>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"({{.*}}) : (vector<8xi32>, vector<32xi8>, vector<32xi8>) -> vector<8xi32>
// CHECK-NOT: arith.muli
func.func @grouped(%a: memref<2x64xi8>, %b: memref<16x8x4xi8>, %out: memref<2x8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %pad = arith.constant 0 : i8
  %zero = arith.constant dense<0> : vector<2x8xi32>
  %acc = scf.for %k = %c0 to %c16 step %c1 iter_args(%s = %zero) -> (vector<2x8xi32>) {
    %at = arith.muli %k, %c4 : index
    %x = vector.transfer_read %a[%c0, %at], %pad {in_bounds = [true, true]} : memref<2x64xi8>, vector<2x4xi8>
    %y = vector.transfer_read %b[%k, %c0, %c0], %pad {in_bounds = [true, true]} : memref<16x8x4xi8>, vector<8x4xi8>
    %t = vector.contract {indexing_maps = [affine_map<(m, n, q) -> (m, q)>, affine_map<(m, n, q) -> (n, q)>, affine_map<(m, n, q) -> (m, n)>],
                          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 0>}
         %x, %y, %s : vector<2x4xi8>, vector<8x4xi8> into vector<2x8xi32>
    scf.yield %t : vector<2x8xi32>
  }
  vector.transfer_write %acc, %out[%c0, %c0] {in_bounds = [true, true]} : vector<2x8xi32>, memref<2x8xi32>
  return
}

// A square is transposed in three rounds of eight shuffles: two within 128 bits, one of pieces of 128 bits.
// CHECK-LABEL: func.func @square
// CHECK-COUNT-8: vector.load
// CHECK: vector.shuffle {{.*}} [0, 8, 1, 9, 4, 12, 5, 13]
// CHECK: vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK: vector.shuffle {{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK-COUNT-8: vector.store
func.func @square(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x8xf32>, vector<8x8xf32>
  %t = vector.transpose %v, [1, 0] : vector<8x8xf32> to vector<8x8xf32>
  vector.transfer_write %t, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x8xf32>, memref<8x8xf32>
  return
}

// Rows that are shorter than a vector and lie one after the other: all of 8x3 elements are one access, of 8x2 vectors.
// CHECK-LABEL: func.func @short_rows(
// CHECK-SAME: %[[X:.*]]: memref<40x3xf32>, %[[Y:.*]]: memref<3x40xf32>, %[[Z:.*]]: memref<40x2xf32>,
// CHECK: %[[ALL:.*]] = vector.load %[[X]]{{.*}} : memref<40x3xf32>, vector<24xf32>
// CHECK: vector.shuffle %{{.*}} [0, 3, 6, 9, 12, 15, 18, 21]
// CHECK-COUNT-3: vector.store %{{.*}}, %[[Y]]{{.*}} vector<8xf32>
// CHECK-COUNT-2: vector.store %{{.*}}, %[[Z]]{{.*}} vector<8xf32>
// CHECK-NOT: vector.store
func.func @short_rows(%x: memref<40x3xf32>, %y: memref<3x40xf32>, %z: memref<40x2xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<40x3xf32>, vector<8x3xf32>
  %t = vector.transpose %v, [1, 0] : vector<8x3xf32> to vector<3x8xf32>
  vector.transfer_write %t, %y[%c0, %i] {in_bounds = [true, true]} : vector<3x8xf32>, memref<3x40xf32>
  %w = vector.transfer_read %y[%c0, %i], %pad {in_bounds = [true, true]} : memref<3x40xf32>, vector<2x8xf32>
  %u = vector.transpose %w, [1, 0] : vector<2x8xf32> to vector<8x2xf32>
  vector.transfer_write %u, %z[%i, %c0] {in_bounds = [true, true]} : vector<8x2xf32>, memref<40x2xf32>
  return
}

// Eight rows of three elements of each of eight columns: squares are transposed, their vectors interleaved, each from two
// and then three; what is stored is whole vectors, masked by as many rows as there are.
// CHECK-LABEL: func.func @interleaved(
// CHECK-SAME: %{{.*}}: memref<8x3x8xf32>, %[[Y:.*]]: memref<8x40x3xf32>, %{{.*}}: index, %[[N:.*]]: index
// CHECK: %[[LANES:.*]] = arith.muli %[[N]], %c3
// CHECK: vector.shuffle {{.*}} [0, 8, 0, 1, 9, 1, 2, 10] : vector<8xf32>, vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 1, 8, 3, 4, 9, 6, 7] : vector<8xf32>, vector<8xf32>
// CHECK-COUNT-24: vector.maskedstore %[[Y]]{{.*}} vector<8xf32>
// CHECK-NOT: vector.maskedstore
func.func @interleaved(%x: memref<8x3x8xf32>, %y: memref<8x40x3xf32>, %i: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0, %c0], %pad {in_bounds = [true, true, true]} : memref<8x3x8xf32>, vector<8x3x8xf32>
  %t = vector.transpose %v, [2, 0, 1] : vector<8x3x8xf32> to vector<8x8x3xf32>
  %m = vector.create_mask %c8, %n, %c3 : vector<8x8x3xi1>
  vector.transfer_write %t, %y[%c0, %i, %c0], %m {in_bounds = [true, true, true]} : vector<8x8x3xf32>, memref<8x40x3xf32>
  return
}

// Columns of rows of three: whole vectors of rows are read for each.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[X:.*]]: memref<40x3xf32>
// CHECK-COUNT-3: vector.load %[[X]]{{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 3, 6, 9, 12, 15, 2, 5]
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 10, 13]
// CHECK-COUNT-3: vector.maskedload %[[X]]{{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [2, 5, 8, 11, 14, 1, 4, 7]
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 9, 12, 15]
// CHECK-NOT: memref.load
func.func @columns(%x: memref<40x3xf32>, %y: memref<40xf32>, %i: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %pad = arith.constant 0.0 : f32
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} : memref<40x3xf32>, vector<8xf32>
  %w = vector.transfer_read %x[%i, %c2], %pad, %m {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} : memref<40x3xf32>, vector<8xf32>
  %s = arith.addf %v, %w : vector<8xf32>
  vector.transfer_write %s, %y[%i] {in_bounds = [true]} : vector<8xf32>, memref<40xf32>
  return
}

// Every second element: two whole vectors, the last masked behind the last of them, not an element at a time.
// CHECK-LABEL: func.func @apart(
// CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [16], strides: [1]
// CHECK: vector.load %[[M]]{{.*}} vector<8xf32>
// CHECK: vector.maskedload %[[M]]{{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK-COUNT-2: vector.maskedload
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK-NOT: memref.load
func.func @apart(%x: memref<?x?xf32>, %y: memref<?xf32>, %i: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f32
  %m = memref.reinterpret_cast %x to offset: [%i], sizes: [8], strides: [2] : memref<?x?xf32> to memref<8xf32, strided<[2], offset: ?>>
  %v = vector.transfer_read %m[%c0], %pad {in_bounds = [true]} : memref<8xf32, strided<[2], offset: ?>>, vector<8xf32>
  vector.transfer_write %v, %y[%c0] {in_bounds = [true]} : vector<8xf32>, memref<?xf32>
  %on = vector.create_mask %n : vector<8xi1>
  %w = vector.transfer_read %m[%c0], %pad, %on {in_bounds = [true]} : memref<8xf32, strided<[2], offset: ?>>, vector<8xf32>
  vector.transfer_write %w, %y[%c8], %on {in_bounds = [true]} : vector<8xf32>, memref<?xf32>
  return
}

// Groups of 4-bit numbers are decoded as whole registers, where they lie, and multiplied as they are.
// CHECK-LABEL: func.func @decoded_groups
// CHECK: %[[W:.*]] = vector.load %arg1{{.*}} vector<32xi8>
// CHECK: %[[C:.*]] = arith.shrui %{{.*}} : vector<32xi32>
// CHECK: %[[N:.*]] = arith.trunci %[[C]] : vector<32xi32> to vector<32xi8>
// CHECK-NOT: vector.shuffle
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"(%{{.*}}, %[[N]], %{{.*}}) : (vector<8xi32>, vector<32xi8>, vector<32xi8>) -> vector<8xi32>
func.func @decoded_groups(%a: memref<4xi8>, %b: memref<8x4xi8>, %c: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0 : i8
  %z = arith.constant dense<0> : vector<8xi32>
  %four = arith.constant dense<4> : vector<8x4xi32>
  %x = vector.transfer_read %a[%c0], %p {in_bounds = [true]} : memref<4xi8>, vector<4xi8>
  %w = vector.transfer_read %b[%c0, %c0], %p {in_bounds = [true, true]} : memref<8x4xi8>, vector<8x4xi8>
  %e = arith.extui %w : vector<8x4xi8> to vector<8x4xi32>
  %s = arith.shrui %e, %four : vector<8x4xi32>
  %n = arith.trunci %s : vector<8x4xi32> to vector<8x4xi8>
  %t = vector.contract {indexing_maps = [affine_map<(n, q) -> (q)>, affine_map<(n, q) -> (n, q)>, affine_map<(n, q) -> (n)>],
    iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 1>}
    %x, %n, %z : vector<4xi8>, vector<8x4xi8> into vector<8xi32>
  vector.transfer_write %t, %c[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>
  return
}

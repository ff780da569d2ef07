// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=configure-tile, lower-tile, mlir(canonicalize, cse)" | filecheck %s

// Sizes, strides, scalars and what a launch gives become symbols; rows that lie apart are a longer row of memory each.
// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %[[X:arg[0-9]+]]: memref<?x?xf32>, %[[Y:arg[0-9]+]]: memref<?x?xf32>, %[[N:arg[0-9]+]]: index,
// CHECK-SAME: tile.symbols = ["x_0", "x_1", "y_0", "y_1", "y_stride_0", "a", "columns"]
// CHECK-SAME: gpu = {instances = 4 : i64, threads = 32 : i64}
// CHECK-SAME: xt.arg_dims = [
// CHECK-SAME: ["d0", "d1"], ["d2", "d4"]]
// CHECK: scf.forall (%[[J:.*]], %[[I:.*]]) in (%{{.*}}, %[[N]])
// CHECK: %[[M:.*]] = vector.create_mask
// CHECK: %[[T:.*]] = vector.transfer_read %[[X]][%[[I]], %{{.*}}], %{{.*}}, %[[M]] {in_bounds = [true]}
// CHECK-SAME: vector<256xf32>
// CHECK: arith.mulf
// CHECK: vector.transfer_write
// CHECK: xcc.parallel
func.func @scale(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32, strided<[?, 1]>> {tile.name = "y"},
                 %a: f32 {tile.name = "a"}) attributes {tile.grid = ["x_0", "columns"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %j = "tile.program_id"() {axis = 1 : i64} : () -> index
  %c256 = arith.constant 256 : index
  %at = arith.muli %j, %c256 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %at) {shape = [1, 256]} : (memref<?x?xf32>, f32, index, index) -> vector<1x256xf32>
  %b = "tile.broadcast"(%a) {shape = [1, 256]} : (f32) -> vector<1x256xf32>
  %s = arith.mulf %t, %b : vector<1x256xf32>
  "tile.store"(%s, %y, %i, %at) : (vector<1x256xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// An offset that may be negative masks the first elements, too; any strides are positions in a line.
// CHECK-LABEL: func.func @anywhere(
// CHECK-SAME: memref<?xf32>
// CHECK: %[[END:.*]] = vector.create_mask
// CHECK: %[[BEGIN:.*]] = vector.create_mask
// CHECK: %[[IN:.*]] = arith.select %[[BEGIN]], %{{.*}}, %[[END]]
// CHECK: vector.gather %{{.*}}[%{{.*}}] [%{{.*}}], %[[IN]]
func.func @anywhere(%x: memref<?xf32, strided<[?]>>, %y: memref<?xf32>, %at: index) attributes {tile.grid = [1]} {
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %at) {shape = [64]} : (memref<?xf32, strided<[?]>>, f32, index) -> vector<64xf32>
  %c0 = arith.constant 0 : index
  "tile.store"(%t, %y, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

// What other threads wrote is read behind a barrier; the same elements are written back without one,
// where threads have elements of their own.
// CHECK-LABEL: func.func @ordered(
// CHECK: vector.transfer_read
// CHECK-NOT: gpu.barrier
// CHECK: vector.transfer_write
// CHECK: gpu.barrier
// CHECK: vector.transfer_read
// CHECK-NOT: gpu.barrier
// CHECK: vector.transfer_write
// CHECK: return
func.func @ordered(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0) {shape = [1024]} : (memref<?xf32>, f32, index) -> vector<1024xf32>
  %n = arith.negf %t : vector<1024xf32>
  "tile.store"(%n, %x, %c0) : (vector<1024xf32>, memref<?xf32>, index) -> ()
  %u = "tile.load"(%x, %zero, %c1) {shape = [1024]} : (memref<?xf32>, f32, index) -> vector<1024xf32>
  "tile.store"(%u, %y, %c0) : (vector<1024xf32>, memref<?xf32>, index) -> ()
  return
}

// A read that more than its own write comes from stands ahead of a barrier: others may read that element, too.
// CHECK-LABEL: func.func @summed(
// CHECK: vector.transfer_read
// CHECK: gpu.barrier
// CHECK: vector.transfer_write
// CHECK: return
func.func @summed(%x: memref<?xi32>, %y: memref<?xi32>, %at: index) attributes {tile.grid = [1]} {
  %zero = arith.constant 0 : i32
  %t = "tile.load"(%x, %zero, %at) {shape = [1]} : (memref<?xi32>, i32, index) -> vector<1xi32>
  %n = arith.addi %t, %t : vector<1xi32>
  "tile.store"(%n, %x, %at) : (vector<1xi32>, memref<?xi32>, index) -> ()
  %s = "tile.broadcast"(%t) {shape = [64]} : (vector<1xi32>) -> vector<64xi32>
  "tile.store"(%s, %y, %at) : (vector<64xi32>, memref<?xi32>, index) -> ()
  return
}

// A tile whose first row is a multiple of its rows lies in front of the buffer as a whole or not at all: one number says it.
// CHECK-LABEL: func.func @in_front(
// CHECK: arith.select {{.*}} : index
// CHECK: vector.create_mask {{.*}} : vector<16x8xi1>
// CHECK-NOT: vector.create_mask
// CHECK: vector.transfer_read
func.func @in_front(%x: memref<?x8xf16> {tile.name = "x"}, %n: index {tile.name = "n"}) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %n, %c16 : index
  %zero = arith.constant 0.0 : f16
  %t = "tile.load"(%x, %zero, %row, %c0) {shape = [16, 8]} : (memref<?x8xf16>, f16, index, index) -> vector<16x8xf16>
  %u = arith.negf %t : vector<16x8xf16>
  "tile.store"(%u, %x, %c0, %c0) : (vector<16x8xf16>, memref<?x8xf16>, index, index) -> ()
  return
}

// Rows that start at multiples of 8 elements are told by their sizes; what is loaded to be turned is loaded so.
// CHECK-LABEL: func.func @turned(
// CHECK-SAME: "8*floordiv(d1, 8)"
// CHECK: vector.transfer_read {{.*}}permutation_map = #{{.*}}vector<16x8xf16>
// CHECK-NOT: vector.transpose
func.func @turned(%x: memref<?x?xf16> {tile.name = "x", tile.multiple = 8 : i64}, %y: memref<?x?xf16> {tile.name = "y"})
    attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %t = "tile.load"(%x, %zero, %c0, %c0) {shape = [8, 16]} : (memref<?x?xf16>, f16, index, index) -> vector<8x16xf16>
  %u = "tile.transpose"(%t) {order = [1, 0]} : (vector<8x16xf16>) -> vector<16x8xf16>
  "tile.store"(%u, %y, %c0, %c0) : (vector<16x8xf16>, memref<?x?xf16>, index, index) -> ()
  return
}

// RUN: %xcc_opt %s "--pass-pipeline=form-blocks, mlir(canonicalize, cse)" | filecheck %s

// The buffer's own size is no bound.
// CHECK-LABEL: func.func @inside(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32>
// CHECK: %[[ROW:.*]] = "tile.program_id"
// CHECK: "tile.load"(%[[X]], %{{.*}}, %[[ROW]], %c0) {inside = false, shape = [1, 64]}
// CHECK-NOT: tile.gather
// CHECK: "tile.store"(%{{.*}}, %[[X]], %[[ROW]], %c0)
// CHECK-NOT: tile.scatter
func.func @inside(%x: memref<?x?xf32>) attributes {tile.grid = ["x_0"]} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %row = "tile.program_id"() {axis = 0} : () -> index
  %rows = "tile.broadcast"(%row) {shape = [64]} : (index) -> vector<64xindex>
  %i = "tile.iota"() {size = 64, dtype = index} : () -> vector<64xindex>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %ns = "tile.broadcast"(%n) {shape = [64]} : (index) -> vector<64xindex>
  %m = arith.cmpi slt, %i, %ns : vector<64xindex>
  %t = "tile.gather"(%x, %zero, %m, %rows, %i) {inside = false} : (memref<?x?xf32>, f32, vector<64xi1>, vector<64xindex>, vector<64xindex>) -> vector<64xf32>
  %e = math.exp %t : vector<64xf32>
  "tile.scatter"(%e, %x, %m, %rows, %i) : (vector<64xf32>, memref<?x?xf32>, vector<64xi1>, vector<64xindex>, vector<64xindex>) -> ()
  return
}

// A bound of the run's, of positions that are shifted, is the size of a view.
// CHECK-LABEL: func.func @bound(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>, %[[N:.*]]: index
// CHECK: %[[N3:.*]] = arith.addi %[[N]], %c3
// CHECK: %[[ABOVE:.*]] = arith.maxsi %[[N3]], %c0
// CHECK: %[[SIZE:.*]] = arith.minsi %{{.*}}, %[[ABOVE]]
// CHECK: %[[V:.*]] = "tile.view"(%[[Y]], %c0, %[[SIZE]])
// CHECK: "tile.store"(%{{.*}}, %[[V]], %c3)
func.func @bound(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %three = arith.constant dense<3> : vector<64xindex>
  %i = "tile.iota"() {size = 64, dtype = index} : () -> vector<64xindex>
  %p = arith.addi %i, %three : vector<64xindex>
  %ns = "tile.broadcast"(%n) {shape = [64]} : (index) -> vector<64xindex>
  %m = arith.cmpi slt, %i, %ns : vector<64xindex>
  %t = "tile.load"(%x, %zero, %c0) {shape = [64], inside = false} : (memref<?xf32>, f32, index) -> vector<64xf32>
  "tile.scatter"(%t, %y, %m, %p) : (vector<64xf32>, memref<?xf32>, vector<64xi1>, vector<64xindex>) -> ()
  return
}

// Columns before rows: the block is transposed. A mask that is no bound chooses among what is read, and lets a scatter be.
// CHECK-LABEL: func.func @transposed(
// CHECK: %[[B:.*]] = "tile.load"(%{{.*}}) {inside = false, shape = [8, 4]}
// CHECK: %[[T:.*]] = "tile.transpose"(%[[B]])
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[T]]
// CHECK: "tile.scatter"(%[[S]]
func.func @transposed(%x: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %zero = arith.constant 0.0 : f32
  %i = "tile.iota"() {size = 4, dtype = index} : () -> vector<4xindex>
  %j = "tile.iota"() {size = 8, dtype = index} : () -> vector<8xindex>
  %c = "tile.reshape"(%i) {shape = [4, 1]} : (vector<4xindex>) -> vector<4x1xindex>
  %cs = "tile.broadcast"(%c) {shape = [4, 8]} : (vector<4x1xindex>) -> vector<4x8xindex>
  %rs = "tile.broadcast"(%j) {shape = [4, 8]} : (vector<8xindex>) -> vector<4x8xindex>
  %two = arith.constant dense<2> : vector<4x8xindex>
  %q = arith.remsi %rs, %two : vector<4x8xindex>
  %none = arith.constant dense<0> : vector<4x8xindex>
  %m = arith.cmpi eq, %q, %none : vector<4x8xindex>
  %t = "tile.gather"(%x, %zero, %m, %rs, %cs) {inside = false} : (memref<?x?xf32>, f32, vector<4x8xi1>, vector<4x8xindex>, vector<4x8xindex>) -> vector<4x8xf32>
  "tile.scatter"(%t, %x, %m, %cs, %rs) : (vector<4x8xf32>, memref<?x?xf32>, vector<4x8xi1>, vector<4x8xindex>, vector<4x8xindex>) -> ()
  return
}

// A diagonal is no block; nor are places of a table.
// CHECK-LABEL: func.func @elsewhere(
// CHECK-COUNT-2: "tile.gather"
func.func @elsewhere(%x: memref<?x?xf32>, %table: memref<?xi32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %nought = arith.constant 0 : i32
  %all = arith.constant dense<true> : vector<8xi1>
  %i = "tile.iota"() {size = 8, dtype = index} : () -> vector<8xindex>
  %d = "tile.gather"(%x, %zero, %all, %i, %i) {inside = true} : (memref<?x?xf32>, f32, vector<8xi1>, vector<8xindex>, vector<8xindex>) -> vector<8xf32>
  %p = "tile.load"(%table, %nought, %c0) {shape = [8], inside = true} : (memref<?xi32>, i32, index) -> vector<8xi32>
  %q = arith.index_cast %p : vector<8xi32> to vector<8xindex>
  %t = "tile.gather"(%x, %zero, %all, %q, %i) {inside = true} : (memref<?x?xf32>, f32, vector<8xi1>, vector<8xindex>, vector<8xindex>) -> vector<8xf32>
  %s = arith.addf %d, %t : vector<8xf32>
  %r = "tile.reshape"(%s) {shape = [1, 8]} : (vector<8xf32>) -> vector<1x8xf32>
  "tile.store"(%r, %x, %c0, %c0) : (vector<1x8xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

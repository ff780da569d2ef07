// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), prefetch-tiles" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), prefetch-tiles, retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE

// The row of the instance after the next, into the first cache, while exponentials are computed: four lines beside two
// pieces.
// CHECK-LABEL: func.func @exponentials(
// CHECK: vector.transfer_read {{.*}}xcc.fetched = array<i64: 2, 1>
// CODE-LABEL: func.func @exponentials(
// CODE: scf.forall (%[[I:.*]]) in
// CODE: scf.for
// CODE-NOT: memref.prefetch
// CODE: scf.for
// CODE-NOT: memref.prefetch
// CODE: %[[LATER:.*]] = arith.addi %[[I]], %c2
// CODE: scf.for
// CODE-COUNT-2: memref.prefetch %arg0[%[[LATER]], %{{.*}}], read, locality<3>, data
// CODE: math.exp
// CODE-COUNT-2: memref.prefetch %arg0[%[[LATER]], %{{.*}}]
// CODE: math.exp
func.func @exponentials(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"}) attributes {tile.grid = ["x_0"]} {
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

// A row that the first cache would not hold beside this one goes to the second.
// CHECK-LABEL: func.func @long(
// CHECK: vector.transfer_read {{.*}}xcc.fetched = array<i64: 1, 2>
// CODE-LABEL: func.func @long(
// CODE: memref.prefetch {{.*}} locality<2>, data
func.func @long(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 8192]} : (memref<?x?xf32>, f32, index, index) -> vector<1x8192xf32>
  %e = math.exp %t : vector<1x8192xf32>
  %s = "tile.reduce"(%e) {axes = [1], kind = "sum"} : (vector<1x8192xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

// Sums of what is read wait for memory themselves; all instances read one row.
// CHECK-LABEL: func.func @sums(
// CHECK-NOT: xcc.fetched
// CHECK-LABEL: func.func @same(
// CHECK-NOT: xcc.fetched
func.func @sums(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %s = "tile.reduce"(%t) {axes = [1], kind = "sum"} : (vector<1x1024xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}
func.func @same(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = ["y_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0, %c0) {shape = [1, 1024]} : (memref<?x?xf32>, f32, index, index) -> vector<1x1024xf32>
  %e = math.exp %t : vector<1x1024xf32>
  %s = "tile.reduce"(%e) {axes = [1], kind = "sum"} : (vector<1x1024xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

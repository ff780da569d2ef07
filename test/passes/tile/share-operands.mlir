// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), share-operands" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), share-operands, retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE

// Columns change with a quotient of the instance's number: neighbours have them in common. Rows change each time.
// A step of the right operand takes 16 KiB of the 2 MiB that a chunk has; it has 64 slots at most.
// CHECK-LABEL: func.func @columns(
// CHECK: vector.contract {{.*}}xcc.shared = array<i64: 0, 64>
// CHECK: } {xcc.chunks = 8 : i64, xcc.parallel}

// A slot is packed where its key is another one; which slot, the loop's turn says.
// CODE-LABEL: func.func @columns(
// CODE: scf.forall
// CODE: %[[ROOM:.*]] = memref.alloca() {{.*}} : memref<262144xf32>
// CODE: %[[TAGS:.*]] = memref.alloca() {{.*}} : memref<{{.*}}xindex>
// CODE: scf.for
// CODE: memref.store %c-9223372036854775808, %[[TAGS]]
// CODE: scf.for
// CODE: scf.for %[[K:.*]] =
// CODE: %[[TURN:.*]] = arith.divui %[[K]], %c64
// CODE: %[[SLOT:.*]] = arith.minsi %[[TURN]], %c63
// CODE: memref.load %[[TAGS]]
// CODE: arith.cmpi ne
// CODE: scf.if
// CODE: vector.store %{{.*}}, %[[ROOM]]
// CODE: memref.store %{{.*}}, %[[TAGS]]
// CODE: math.fma
func.func @columns(%a: memref<?x?xf32> {tile.name = "a"}, %b: memref<?x?xf32> {tile.name = "b"}, %c: memref<?x?xf32> {tile.name = "c"}) attributes {tile.grid = ["grid_0"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<32x64xf32>
  %p = "tile.program_id"() {axis = 0 : i64} : () -> index
  %q = arith.divui %p, %c4 : index
  %m = arith.remui %p, %c4 : index
  %i = arith.muli %m, %c32 : index
  %j = arith.muli %q, %c64 : index
  %n = memref.dim %a, %c1 : memref<?x?xf32>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<32x64xf32>) {
    %x = "tile.load"(%a, %zero, %i, %k) {shape = [32, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<32x64xf32>
    %y = "tile.load"(%b, %zero, %k, %j) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
    %r = "tile.contract"(%x, %y, %acc) : (vector<32x64xf32>, vector<64x64xf32>, vector<32x64xf32>) -> vector<32x64xf32>
    scf.yield %r : vector<32x64xf32>
  }
  "tile.store"(%s, %c, %i, %j) : (vector<32x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// What the program writes is not shared.
// CHECK-LABEL: func.func @written(
// CHECK-NOT: xcc.shared
// CHECK-NOT: xcc.chunks
func.func @written(%a: memref<?x?xf32> {tile.name = "a"}, %b: memref<?x?xf32> {tile.name = "b"}) attributes {tile.grid = ["grid_0", "grid_1"]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<32x64xf32>
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %j = "tile.program_id"() {axis = 1 : i64} : () -> index
  %x = "tile.load"(%a, %zero, %i, %c0) {shape = [32, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<32x64xf32>
  %y = "tile.load"(%b, %zero, %j, %c0) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
  %r = "tile.contract"(%x, %y, %none) : (vector<32x64xf32>, vector<64x64xf32>, vector<32x64xf32>) -> vector<32x64xf32>
  "tile.store"(%r, %b, %i, %c0) : (vector<32x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

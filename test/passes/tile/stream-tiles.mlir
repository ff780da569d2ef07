// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), stream-tiles" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), stream-tiles{bytes=4096}, retile, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE

// CHECK-LABEL: func.func @double(
// CHECK: vector.transfer_write {{.*}}xcc.stream = 16777216 : i64

// One nest of non-temporal stores, where lines of the tile begin at those of the cache and the buffer is large; one of
// plain ones.
// CODE-LABEL: func.func @double(
// CODE: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %arg1
// CODE: arith.andi %{{.*}}, %c63
// CODE: arith.cmpi sgt, %{{.*}}, %c4096
// CODE: scf.if
// CODE: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true}
// CODE: vector.maskedstore
// CODE: else
// CODE: vector.store %{{[^{]*}} : memref<?xf32>, vector<32xf32>
func.func @double(%x: memref<?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = ["grid_0"]} {
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %p = "tile.program_id"() {axis = 0 : i64} : () -> index
  %at = arith.muli %p, %c1024 : index
  %t = "tile.load"(%x, %zero, %at) {shape = [1024]} : (memref<?xf32>, f32, index) -> vector<1024xf32>
  %s = arith.addf %t, %t : vector<1024xf32>
  "tile.store"(%s, %y, %at) : (vector<1024xf32>, memref<?xf32>, index) -> ()
  return
}

// Less than two lines at a time, and results of products, go through the caches.
// CHECK-LABEL: func.func @short(
// CHECK-NOT: xcc.stream
// CHECK-LABEL: func.func @product(
// CHECK-NOT: xcc.stream
func.func @short(%x: memref<?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0) {shape = [16]} : (memref<?xf32>, f32, index) -> vector<16xf32>
  "tile.store"(%t, %y, %c0) : (vector<16xf32>, memref<?xf32>, index) -> ()
  return
}

func.func @product(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"}) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %t = "tile.load"(%x, %zero, %c0, %c0) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
  %r = "tile.contract"(%t, %t, %none) : (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
  "tile.store"(%r, %y, %c0, %c0) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

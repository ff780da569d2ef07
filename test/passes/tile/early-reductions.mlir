// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), early-reductions" | filecheck %s

// What is reduced is there before the store: the sum does not wait.
// CHECK-LABEL: func.func @early(
// CHECK: vector.transfer_read
// CHECK: vector.multi_reduction
// CHECK: vector.transfer_write
// CHECK: vector.transfer_write
// CHECK-NOT: vector.multi_reduction
func.func @early(%x: memref<?xf32> {tile.name = "x"}, %y: memref<?xf32>, %s: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %r = "tile.reshape"(%t) {shape = [1, 64]} : (vector<64xf32>) -> vector<1x64xf32>
  "tile.store"(%t, %y, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  %sum = "tile.reduce"(%r) {axes = [1], kind = "sum"} : (vector<1x64xf32>) -> vector<1xf32>
  "tile.store"(%sum, %s, %c0) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

// One of what is read behind the store stays behind it.
// CHECK-LABEL: func.func @late(
// CHECK: vector.transfer_write
// CHECK: vector.transfer_read
// CHECK: vector.multi_reduction
func.func @late(%x: memref<?xf32> {tile.name = "x"}, %s: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : vector<64xf32>
  "tile.store"(%one, %x, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  %t = "tile.load"(%x, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %r = "tile.reshape"(%t) {shape = [1, 64]} : (vector<64xf32>) -> vector<1x64xf32>
  %sum = "tile.reduce"(%r) {axes = [1], kind = "sum"} : (vector<1x64xf32>) -> vector<1xf32>
  "tile.store"(%sum, %s, %c0) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

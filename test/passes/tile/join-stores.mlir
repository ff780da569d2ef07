// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), join-stores" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), join-stores, retile" | filecheck %s --check-prefix=LOOPS

// What both stores are made of is read once, by the loops of both, also what is read between them.
// CHECK-LABEL: func.func @step(
// CHECK: vector.transfer_write {{.*}}, %arg1{{.*}} {in_bounds = [true], xcc.together = 0 : i64}
// CHECK: vector.transfer_write {{.*}}, %arg0{{.*}} {in_bounds = [true], xcc.together = 0 : i64}
// LOOPS-LABEL: func.func @step(
// LOOPS-NOT: memref.alloca
// LOOPS: scf.for
// LOOPS: %[[V:.*]] = vector.maskedload %arg1
// LOOPS: %[[G:.*]] = vector.maskedload %arg2
// LOOPS: %[[M:.*]] = arith.addf %[[V]], %[[G]]
// LOOPS: vector.store %[[M]], %arg1
// LOOPS: %[[P:.*]] = vector.maskedload %arg0
// LOOPS: arith.subf %[[P]], %[[M]]
// LOOPS: vector.store %{{.*}}, %arg0
func.func @step(%p: memref<?xf32> {tile.name = "p"}, %v: memref<?xf32>, %g: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = "tile.load"(%v, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %b = "tile.load"(%g, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %m = arith.addf %a, %b : vector<64xf32>
  "tile.store"(%m, %v, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  %c = "tile.load"(%p, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %d = arith.subf %c, %m : vector<64xf32>
  "tile.store"(%d, %p, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

// Not what shares nothing, what reads what was written, or what is written elsewhere.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT: xcc.together
// CHECK: return
func.func @apart(%x: memref<?xf32> {tile.name = "x"}, %y: memref<?xf32>, %z: memref<?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : vector<64xf32>
  %a = "tile.load"(%x, %zero, %c0) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %b = arith.addf %a, %a : vector<64xf32>
  "tile.store"(%one, %z, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  "tile.store"(%b, %y, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  %c = "tile.load"(%y, %zero, %c64) {shape = [64]} : (memref<?xf32>, f32, index) -> vector<64xf32>
  %d = arith.addf %b, %c : vector<64xf32>
  "tile.store"(%d, %z, %c0) : (vector<64xf32>, memref<?xf32>, index) -> ()
  "tile.store"(%b, %y, %c64) : (vector<64xf32>, memref<?xf32>, index) -> ()
  return
}

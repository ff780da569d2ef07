// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), peel-instances, retile, mlir(canonicalize, cse)" | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 "--pass-pipeline=lower-tile, mlir(canonicalize, cse), peel-instances" | filecheck %s --check-prefix=HALF

// 256 elements are half of 32 registers: a whole row is straight code, another one goes in loops. For 16 shorter
// registers they are too many.
// CHECK-LABEL: func.func @total(
// CHECK: arith.cmpi sge, %{{.*}}, %c256
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK-COUNT-8: vector.load %arg0[{{.*}}vector<32xf32>
// CHECK: memref.store
// CHECK: } else {
// CHECK: scf.for
// CHECK: vector.maskedload
// HALF-LABEL: func.func @total(
// HALF-NOT: xcc.peeled
func.func @total(%x: memref<?x?xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"}) attributes {tile.grid = ["x_0"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 256]} : (memref<?x?xf32>, f32, index, index) -> vector<1x256xf32>
  %s = "tile.reduce"(%t) {axes = [1], kind = "sum"} : (vector<1x256xf32>) -> vector<1xf32>
  "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
  return
}

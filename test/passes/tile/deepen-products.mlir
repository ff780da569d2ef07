// RUN: %xcc_opt %s --target=cpu --chip=znver4 "--pass-pipeline=deepen-products, mlir(canonicalize, cse)" | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=deepen-products" | filecheck %s --check-prefix=GPU

// Four steps of 64 at a time, as far as there are four; an operand may be converted, reshaped and transposed.
// CHECK-LABEL: func.func @product(
// CHECK: %[[END:.*]] = arith.muli %{{.*}}, %c256
// CHECK: %[[DEEP:.*]] = scf.for %[[K:.*]] = %c0 to %[[END]] step %c256
// CHECK: "tile.load"(%arg0, %{{.*}}, %c0, %[[K]]) {{.*}}shape = [64, 256]
// CHECK: "tile.load"(%arg1, %{{.*}}, %c0, %c0, %[[K]]) {{.*}}shape = [1, 128, 256]
// CHECK: "tile.reshape"({{.*}}) {shape = [128, 256]}
// CHECK: "tile.transpose"({{.*}} -> vector<256x128xf16>
// CHECK: arith.extf {{.*}} to vector<256x128xf32>
// CHECK: scf.for %{{.*}} = %[[END]] to %{{.*}} step %c64 iter_args(%{{.*}} = %[[DEEP]])
// CHECK: "tile.load"(%arg0, {{.*}}shape = [64, 64]
// GPU-LABEL: func.func @product(
// GPU-COUNT-1: scf.for
// GPU-NOT: scf.for
// GPU-LABEL: func.func @two_uses(
func.func @product(%a: memref<?x?xf32>, %b: memref<?x?x?xf16>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<64x128xf32>
  %n = memref.dim %a, %c1 : memref<?x?xf32>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<64x128xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
    %y = "tile.load"(%b, %half, %c0, %c0, %k) {shape = [1, 128, 64]} : (memref<?x?x?xf16>, f16, index, index, index) -> vector<1x128x64xf16>
    %r = "tile.reshape"(%y) {shape = [128, 64]} : (vector<1x128x64xf16>) -> vector<128x64xf16>
    %t = "tile.transpose"(%r) {order = [1, 0]} : (vector<128x64xf16>) -> vector<64x128xf16>
    %w = arith.extf %t : vector<64x128xf16> to vector<64x128xf32>
    %p = "tile.contract"(%x, %w, %acc) : (vector<64x64xf32>, vector<64x128xf32>, vector<64x128xf32>) -> vector<64x128xf32>
    scf.yield %p : vector<64x128xf32>
  }
  "tile.store"(%s, %c, %c0, %c0) : (vector<64x128xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// What else needs a step's tile keeps the loop as it is.
// CHECK-LABEL: func.func @two_uses(
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @two_uses(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {tile.grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<64x64xf32>
  %n = memref.dim %a, %c1 : memref<?x?xf32>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<64x64xf32>) {
    %x = "tile.load"(%a, %zero, %c0, %k) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
    %y = "tile.load"(%b, %zero, %k, %c0) {shape = [64, 64]} : (memref<?x?xf32>, f32, index, index) -> vector<64x64xf32>
    "tile.store"(%x, %c, %c0, %k) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
    %p = "tile.contract"(%x, %y, %acc) : (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>) -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  }
  "tile.store"(%s, %c, %c0, %c0) : (vector<64x64xf32>, memref<?x?xf32>, index, index) -> ()
  return
}

// RUN: %xcc_opt %s --pass-pipeline=block-loops | filecheck %s

// The scale of a block is read once for its 32 elements.
// CHECK-LABEL: @scaled
// CHECK: %[[Y:.*]] = scf.for %[[B:.*]] = %c0 to %c2048 step %c32{{.*}} iter_args(%[[T:.*]] = %{{.*}})
// CHECK: %[[G:.*]] = arith.floordivsi %[[B]], %c32
// CHECK: %[[S:.*]] = vector.transfer_read %arg1[%[[G]], %c0]
// CHECK: %[[Z:.*]] = scf.for %[[K:.*]] = %[[B]] to %{{.*}} step %c1 iter_args(%{{.*}} = %[[T]])
// CHECK-NOT: floordivsi
// CHECK: vector.transfer_read %arg0[%[[K]], %c0]
// CHECK: math.fma %{{.*}}, %[[S]], %{{.*}}
// CHECK: scf.yield %[[Z]]
// CHECK: vector.transfer_write %[[Y]], %arg2
func.func @scaled(%x: memref<2048x16xf32>, %scale: memref<64x16xf32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c2048 = arith.constant 2048 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %sum = scf.for %k = %c0 to %c2048 step %c1 iter_args(%s = %zero) -> (vector<16xf32>) {
    %g = arith.floordivsi %k, %c32 : index
    %f = vector.transfer_read %scale[%g, %c0], %pad {in_bounds = [true]} : memref<64x16xf32>, vector<16xf32>
    %v = vector.transfer_read %x[%k, %c0], %pad {in_bounds = [true]} : memref<2048x16xf32>, vector<16xf32>
    %t = math.fma %v, %f, %s : vector<16xf32>
    scf.yield %t : vector<16xf32>
  }
  vector.transfer_write %sum, %y[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
  return
}

// A loop that writes to an argument, and one whose last block would be shorter, stay.
// CHECK-LABEL: @written
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
func.func @written(%x: memref<2048xf32>, %y: memref<2048xf32>, %z: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c100 = arith.constant 100 : index
  %c2048 = arith.constant 2048 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c2048 step %c1 {
    %g = arith.floordivsi %k, %c32 : index
    %v = memref.load %x[%g] : memref<2048xf32>
    memref.store %v, %y[%k] : memref<2048xf32>
  }
  %sum = scf.for %k = %c0 to %c100 step %c1 iter_args(%s = %zero) -> (f32) {
    %g = arith.floordivsi %k, %c32 : index
    %v = memref.load %x[%g] : memref<2048xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  memref.store %sum, %z[] : memref<f32>
  return
}

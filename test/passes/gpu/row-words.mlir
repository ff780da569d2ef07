// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline='assign-layouts, distribute, mlir(canonicalize), mlir(cse)' | filecheck %s

// Rows that begin anywhere: each thread reads two words of 16 bytes, the second where its elements go on there, takes its
// elements of them, and stores a word of what two lanes have.
// CHECK-LABEL: gpu.func @odd
// CHECK: %[[F:.*]] = arith.andi %{{.*}}, %c7
// CHECK: memref.reinterpret_cast
// CHECK: scf.if
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// CHECK: vector.bitcast %{{.*}} : vector<8xf16> to vector<4xi32>
// CHECK: scf.if
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// CHECK: gpu.shuffle
// CHECK: vector.store %{{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf16>
func.func @odd(%x: memref<8x1027xf16>, %y: memref<8x1027xf16>) attributes {xt.kernel, xt.symbols = [], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  scf.forall (%i) in (8) {
    %m = vector.constant_mask [1027] : vector<2048xi1>
    %t = vector.transfer_read %x[%i, %c0], %zero, %m {in_bounds = [true]} : memref<8x1027xf16>, vector<2048xf16>
    %n = arith.negf %t : vector<2048xf16>
    vector.transfer_write %n, %y[%i, %c0], %m {in_bounds = [true]} : vector<2048xf16>, memref<8x1027xf16>
  }
  return
}

// Where rows of wider elements begin anywhere, too, all are read as neighbours lie in lanes: 32 bits of a lane fill sectors.
// CHECK-LABEL: gpu.func @wider
// CHECK-NOT: vector<8xf16>
// CHECK-NOT: vector<4xi32>
func.func @wider(%x: memref<8x1027xf16>, %y: memref<8x1027xf32>) attributes {xt.kernel, xt.symbols = [], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  scf.forall (%i) in (8) {
    %m = vector.constant_mask [1027] : vector<2048xi1>
    %t = vector.transfer_read %x[%i, %c0], %zero, %m {in_bounds = [true]} : memref<8x1027xf16>, vector<2048xf16>
    %n = arith.extf %t : vector<2048xf16> to vector<2048xf32>
    vector.transfer_write %n, %y[%i, %c0], %m {in_bounds = [true]} : vector<2048xf32>, memref<8x1027xf32>
  }
  return
}

// RUN: %xcc_opt %s --pass-pipeline="unroll-vectors{lanes=16}, mlir(canonicalize, cse)" | filecheck %s

// Nine bf16, one more than a register has, are lanes of sixteen.
// CHECK-LABEL: func.func @one_more_than_a_register
// CHECK: vector.maskedload {{.*}} into vector<16xbf16>
// CHECK-NOT: vector.load
// CHECK: vector.maskedstore {{.*}}, vector<16xbf16>
func.func @one_more_than_a_register(%x: memref<9xbf16>, %y: memref<9xbf16>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %v = vector.transfer_read %x[%c0], %pad {in_bounds = [true]} : memref<9xbf16>, vector<9xbf16>
  vector.transfer_write %v, %y[%c0] {in_bounds = [true]} : vector<9xbf16>, memref<9xbf16>
  return
}

// CHECK-LABEL: func.func @masked
// CHECK: vector.maskedload {{.*}} into vector<16xbf16>
// CHECK: vector.maskedstore {{.*}}, vector<16xbf16>
func.func @masked(%x: memref<?xbf16>, %y: memref<?xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  %m = vector.create_mask %n : vector<9xi1>
  %v = vector.transfer_read %x[%c0], %pad, %m {in_bounds = [true]} : memref<?xbf16>, vector<9xbf16>
  vector.transfer_write %v, %y[%c0], %m {in_bounds = [true]} : vector<9xbf16>, memref<?xbf16>
  return
}

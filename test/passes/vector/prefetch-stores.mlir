// RUN: %xcc_opt %s --pass-pipeline="prefetch-stores" | filecheck %s

#turned = affine_map<(d0, d1) -> (d1, d0)>

// Rows of 32 elements end in two lines each.
// CHECK-LABEL: func.func @rows
// CHECK: arith.addi %arg3, %c15
// CHECK: memref.prefetch %arg1[%arg2, %{{.*}}], write, locality<3>, data
// CHECK: arith.addi %arg3, %c31
// CHECK: memref.prefetch %arg1[%arg2, %{{.*}}]
// CHECK: arith.addi %arg2, %c1
// CHECK-COUNT-6: memref.prefetch
// CHECK-NOT: memref.prefetch
// CHECK: vector.transfer_write
func.func @rows(%v: vector<4x32xf32>, %y: memref<300x100xf32>, %i: index, %j: index) {
  vector.transfer_write %v, %y[%i, %j] {in_bounds = [true, true]} : vector<4x32xf32>, memref<300x100xf32>
  return
}

// The vector's first dim lies along the buffer's rows.
// CHECK-LABEL: func.func @turned
// CHECK-COUNT-8: memref.prefetch
// CHECK-NOT: memref.prefetch
func.func @turned(%v: vector<16x8xf32>, %y: memref<?x?xf32>, %i: index, %j: index) {
  vector.transfer_write %v, %y[%i, %j] {in_bounds = [true, true], permutation_map = #turned} : vector<16x8xf32>, memref<?x?xf32>
  return
}

// One row, rows shorter than a line, a mask, a result in the first cache, a chunk's own memory, stores past the caches: none.
// CHECK-LABEL: func.func @none
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @none(%row: vector<1x64xf32>, %short: vector<16x8xf32>, %v: vector<4x16xf32>, %m: vector<4x16xi1>,
                %y: memref<300x100xf32>, %small: memref<64x128xf32>, %i: index, %j: index) {
  %own = memref.alloca() : memref<300x100xf32>
  vector.transfer_write %row, %y[%i, %j] {in_bounds = [true, true]} : vector<1x64xf32>, memref<300x100xf32>
  vector.transfer_write %short, %y[%i, %j] {in_bounds = [true, true]} : vector<16x8xf32>, memref<300x100xf32>
  vector.transfer_write %v, %y[%i, %j], %m {in_bounds = [true, true]} : vector<4x16xf32>, memref<300x100xf32>
  vector.transfer_write %v, %small[%i, %j] {in_bounds = [true, true]} : vector<4x16xf32>, memref<64x128xf32>
  vector.transfer_write %v, %own[%i, %j] {in_bounds = [true, true]} : vector<4x16xf32>, memref<300x100xf32>
  vector.transfer_write %v, %y[%i, %j] {in_bounds = [true, true], xcc.stream} : vector<4x16xf32>, memref<300x100xf32>
  return
}

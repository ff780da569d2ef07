// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each --split-input-file | filecheck %s

// CHECK-LABEL: func.func private @cumsum
// CHECK-SAME: xcc.loops
func.func private @cumsum(%x: tensor<?x5xf32, ["d0", 5]>) -> tensor<?x5xf32, ["d0", 5]>
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  // Four rows of floats at a time: all are read before one is written. Totals are f64.
  // CHECK: %[[GROUPS:.*]] = arith.floordivsi
  // CHECK: scf.forall (%[[I:.*]]) in (%[[GROUPS]])
  // CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %c4
  // CHECK: scf.for %[[J:.*]] = %{{.*}} iter_args({{.*}}) -> (f64, f64, f64, f64)
  // CHECK-COUNT-4: memref.load %{{.*}}[%{{.*}}, %[[J]]]
  // CHECK-COUNT-4: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[J]]]
  // CHECK: {xcc.parallel}
  %0 = "xt.cumulative"(%x) {kind = "sum", axis = 1, exclusive = false, reverse = false}
      : (tensor<?x5xf32, ["d0", 5]>) -> tensor<?x5xf32, ["d0", 5]>
  return %0 : tensor<?x5xf32, ["d0", 5]>
}

// -----

// Along another dim than the last, neighbours are scanned together: their totals lie on the stack.
// CHECK-LABEL: func.func private @cumsum_across
// CHECK: %[[X:.*]] = memref.collapse_shape %arg0 {{\[}}[0], [1], [2, 3]] : memref<4x5x30x20xf32> into memref<4x5x600xf32>
// CHECK: scf.forall (%[[I:.*]], %[[B:.*]]) in (4, 3)
// CHECK: %[[SUMS:.*]] = memref.alloca() : memref<256xf64>
// CHECK: memref.store %{{.*}}, %[[SUMS]]
// CHECK: scf.for %[[K:.*]] =
// CHECK-NEXT: scf.for %[[J:.*]] =
// CHECK: memref.load %[[SUMS]][%[[J]]]
// CHECK: memref.load %[[X]][%[[I]], %[[K]],
// CHECK: memref.store %{{.*}}, %[[SUMS]][%[[J]]]
func.func private @cumsum_across(%x: tensor<4x5x30x20xf32>) -> tensor<4x5x30x20xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.cumulative"(%x) {kind = "sum", axis = 1, exclusive = false, reverse = false} : (tensor<4x5x30x20xf32>) -> tensor<4x5x30x20xf32>
  return %0 : tensor<4x5x30x20xf32>
}

// -----

// The count is one more output; the coordinates are a flat buffer of the upper bound.
// CHECK-LABEL: func.func private @nonzero
// CHECK-SAME: memref<3x4xi8>, %{{.*}}: memref<24xi64>, %[[COUNT:.*]]: memref<1xi64>
func.func private @nonzero(%x: tensor<3x4xi1>) -> tensor<2x?xi64, [2, "n"]>
    attributes {xt.kernel, xt.symbols = []} {
  // Counted in a line, written by loops over the dims: places are not divided.
  // CHECK: %[[LINE:.*]] = memref.collapse_shape
  // CHECK: scf.for
  // CHECK: memref.load %[[LINE]]
  // CHECK: memref.store %{{.*}}, %[[COUNT]]
  // CHECK: scf.for %[[I:.*]] = %{{[^ ]*}} to %c3
  // CHECK-NEXT: scf.for %[[J:.*]] = %{{[^ ]*}} to %c4
  // CHECK: memref.load %{{.*}}[%[[I]], %[[J]]]
  %0 = "xt.nonzero"(%x) {symbol = "n"} : (tensor<3x4xi1>) -> tensor<2x?xi64, [2, "n"]>
  return %0 : tensor<2x?xi64, [2, "n"]>
}

// -----

// Totals of neighbours wait on the stack while the rows of a segment are added.
// CHECK-LABEL: func.func private @segments
// CHECK: scf.forall (%[[P:.*]], %{{.*}}) in (5, 1)
// CHECK: %[[T:.*]] = memref.alloca() : memref<256xf32>
// CHECK: %[[O:.*]] = memref.load %arg2[
// CHECK: %[[R:.*]] = arith.index_cast %[[O]]
// CHECK-NEXT: scf.for
// CHECK: memref.load %arg3[%[[R]], %
// CHECK: memref.store %{{.*}}, %[[T]]
func.func private @segments(%x: tensor<1x1xf16>, %s: tensor<6xi32>, %o: tensor<20xi64>, %u: tensor<9x64xf16>) -> tensor<5x64xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.combine_segments"(%x, %s, %o, %u) {reduction = "add"} : (tensor<1x1xf16>, tensor<6xi32>, tensor<20xi64>, tensor<9x64xf16>) -> tensor<5x64xf16>
  return %0 : tensor<5x64xf16>
}

// -----

// Sixteen rows in the lanes: transposed, 200 numbers by factors, and back.
// CHECK-LABEL: func.func private @spectra
// CHECK-SAME: xcc.loops, xcc.machine
// CHECK: scf.forall
// CHECK-COUNT-2: memref.alloca() {alignment = 64 : i64} : memref<6432xf32>
// CHECK: scf.for
// CHECK-COUNT-16: vector.load %arg0[{{.*}}vector<16xf32>
// CHECK: vector.shuffle
// CHECK: math.fma {{.*}} vector<16xf32>
// CHECK-COUNT-16: vector.store {{.*}}, %arg2[
func.func private @spectra(%x: tensor<?x400xf32, ["d0", 400]>, %r: tensor<400x2xf32>) -> tensor<?x402xf32, ["d0", 402]> attributes {xt.kernel, xt.symbols = ["d0"]} {
  %0 = "xt.fourier_rows"(%x, %r) {kind = "real", lanes = 16 : i64} : (tensor<?x400xf32, ["d0", 400]>, tensor<400x2xf32>) -> tensor<?x402xf32, ["d0", 402]>
  return %0 : tensor<?x402xf32, ["d0", 402]>
}

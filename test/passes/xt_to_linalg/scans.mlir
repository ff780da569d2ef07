// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=xt-to-linalg --split-input-file | filecheck %s

// Several short rows are a tile.
// CHECK-LABEL: func.func private @rows(
// CHECK-SAME: xcc.config = {gpu = {threads = 256 : i64}}, xcc.tiles
// CHECK: scf.forall (%[[I:.*]], %{{.*}}) = (0, 0) to (100, 1) step (16, 1)
// CHECK: %[[X:.*]] = vector.transfer_read {{.*}} : memref<100x70xf32>, vector<16x128xf32>
// CHECK: %{{.*}}, %{{.*}} = vector.scan <add>, %[[X]], %{{.*}} {inclusive = true, reduction_dim = 1 : i64}
// CHECK: vector.transfer_write
func.func private @rows(%x: tensor<100x70xf32>) -> tensor<100x70xf32> attributes {xt.kernel, xt.symbols = []} {
  %y = "xt.scan_rows"(%x) {kind = "sum", part = 0 : i64, exclusive = false, reverse = false, operandSegmentSizes = array<i32: 1, 0>} : (tensor<100x70xf32>) -> tensor<100x70xf32>
  return %y : tensor<100x70xf32>
}

// -----

// A part of a row a workgroup, from its start, the last ones first: the cache still has them; narrow floats in f32.
// CHECK-LABEL: func.func private @parts(
// CHECK: scf.forall (%[[I:.*]], %[[P:.*]]) in (1, 3)
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %[[P]]
// CHECK: memref.load %arg1[%[[I]], %[[LAST]]]
// CHECK: %[[X:.*]] = vector.transfer_read {{.*}} : memref<1x9000xf16>, vector<1x4096xf16>
// CHECK: arith.extf %[[X]]
// CHECK: vector.scan <add>
func.func private @parts(%x: tensor<1x9000xf16>, %s: tensor<1x3xf32>) -> tensor<1x9000xf16> attributes {xt.kernel, xt.symbols = []} {
  %y = "xt.scan_rows"(%x, %s) {kind = "sum", part = 4096 : i64, exclusive = false, reverse = false, operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x9000xf16>, tensor<1x3xf32>) -> tensor<1x9000xf16>
  return %y : tensor<1x9000xf16>
}

// -----

// Long rows are walked in a loop that carries the totals.
// CHECK-LABEL: func.func private @long(
// CHECK: scf.for {{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (vector<1xi32>)
// CHECK: %{{.*}}, %[[T:.*]] = vector.scan <maxsi>, %{{.*}}, %[[C]] {inclusive = false, reduction_dim = 1 : i64, xcc.reverse}
// CHECK: scf.yield %[[T]]
func.func private @long(%x: tensor<500x9000xi32>) -> tensor<500x9000xi32> attributes {xt.kernel, xt.symbols = []} {
  %y = "xt.scan_rows"(%x) {kind = "max", part = 0 : i64, exclusive = true, reverse = true, operandSegmentSizes = array<i32: 1, 0>} : (tensor<500x9000xi32>) -> tensor<500x9000xi32>
  return %y : tensor<500x9000xi32>
}

// -----

// A part of 64 columns a workgroup, with a start for each.
// CHECK-LABEL: func.func private @columns(
// CHECK-SAME: xcc.config = {gpu = {threads = 128 : i64}}
// CHECK: scf.forall (%[[I:.*]], %[[P:.*]], %[[C:.*]]) = (0, 0, 0) to (2, 3, 100) step (1, 1, 64)
// CHECK: %[[S:.*]] = vector.transfer_read %arg1[%[[I]], %{{.*}}, %[[C]]]{{.*}} : memref<2x3x100xf32>, vector<64xf32>
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %[[S]])
// CHECK: %[[X:.*]] = vector.transfer_read %arg0[%[[I]], %{{.*}}, %[[C]]]{{.*}} : memref<2x300x100xf16>, vector<64x64xf16>
// CHECK: %{{.*}}, %[[N:.*]] = vector.scan <add>, %{{.*}}, %[[T]] {inclusive = true, reduction_dim = 0 : i64}
// CHECK: scf.yield %[[N]]
func.func private @columns(%x: tensor<2x300x100xf16>, %s: tensor<2x3x100xf32>) -> tensor<2x300x100xf16> attributes {xt.kernel, xt.symbols = []} {
  %y = "xt.scan_rows"(%x, %s) {kind = "sum", part = 128 : i64, exclusive = false, reverse = false, operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x300x100xf16>, tensor<2x3x100xf32>) -> tensor<2x300x100xf16>
  return %y : tensor<2x300x100xf16>
}

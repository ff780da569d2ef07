// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure, %loops, tile, mlir(canonicalize, cse)" --split-input-file | filecheck %s

// A turned concatenation: whole tiles of the operand that they belong to, what is left of a dim is masked.
// CHECK-LABEL: func.func private @turned(
// CHECK-SAME: %[[A:[^:]*]]: memref<?x48x?xf32>, %[[B:[^:]*]]: memref<?x32x?xf32>
// CHECK-SAME: vector = array<i64: 1, 16, 16>
// CHECK: scf.for %{{.*}} step %c16
// CHECK: scf.for %[[C:.*]] = %c0 to %c80 step %c16
// CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[C]], %c48
// CHECK: %[[TILE:.*]] = scf.if %[[AFTER]] -> (vector<16x16xf32>)
// CHECK: vector.transfer_read %[[B]][%{{.*}}], %{{[^,]*}} {
// CHECK: } else {
// CHECK: vector.transfer_read %[[A]][%{{.*}}, %[[C]], %{{.*}}], %{{[^,]*}} {
// CHECK: vector.transpose %[[TILE]], [1, 0]
// CHECK-NOT: scf.for %{{.*}} step %c1 {
// CHECK: vector.create_mask
func.func private @turned(%a: tensor<?x48x?xf32, ["d0", 48, "d1"]>, %b: tensor<?x32x?xf32, ["d0", 32, "d1"]>) -> tensor<?x?x80xf32, ["d0", "d1", 80]>
    attributes {xt.kernel, xt.symbols = ["d0", "d1"]} {
  %c = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<?x48x?xf32, ["d0", 48, "d1"]>, tensor<?x32x?xf32, ["d0", 32, "d1"]>) -> tensor<?x80x?xf32, ["d0", 80, "d1"]>
  %y = "xt.transpose"(%c) {perm = [0, 2, 1]} : (tensor<?x80x?xf32, ["d0", 80, "d1"]>) -> tensor<?x?x80xf32, ["d0", "d1", 80]>
  return %y : tensor<?x?x80xf32, ["d0", "d1", 80]>
}

// -----
// Rows of one operand or the other: only its tanh is evaluated.
// CHECK-LABEL: func.func private @rows(
// CHECK: scf.if
// CHECK: math.tanh
// CHECK: } else {
// CHECK-NOT: math.tanh
// CHECK: scf.yield
func.func private @rows(%a: tensor<64x256xf32>, %b: tensor<64x256xf32>) -> tensor<128x256xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %t = "xt.tanh"(%b) : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = "xtv.concatenate"(%a, %t) {axis = 0 : i64} : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}

// -----
// A tile may lie across a bound that no tile begins at: the elements of either are chosen one by one there.
// CHECK-LABEL: func.func private @across(
// CHECK: arith.andi
// CHECK: scf.if
// CHECK: } else {
// CHECK: scf.if
// CHECK: } else {
// CHECK: arith.select %{{.*}} : vector<32xi1>, vector<32xf32>
func.func private @across(%a: tensor<64x100xf32>, %b: tensor<64x60xf32>, %c: tensor<64x96xf32>) -> tensor<64x256xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %y = "xtv.concatenate"(%a, %b, %c) {axis = 1 : i64} : (tensor<64x100xf32>, tensor<64x60xf32>, tensor<64x96xf32>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// -----
// No tile is one operand's: no branches.
// CHECK-LABEL: func.func private @short(
// CHECK-NOT: scf.if
// CHECK: return
func.func private @short(%a: tensor<64x3xf32>, %b: tensor<64x5xf32>) -> tensor<64x8xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %y = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<64x3xf32>, tensor<64x5xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// -----
// Columns: all of them in a tile, that of each, and their transpose.
// CHECK-LABEL: func.func private @columns(
// CHECK-SAME: vector = array<i64: 1, 16, 2>
// CHECK-COUNT-2: vector.transfer_read {{.*}} vector<16xf32>
// CHECK: %[[BOTH:.*]] = arith.select {{.*}} vector<2x16xf32>
// CHECK: %[[ROWS:.*]] = vector.transpose %[[BOTH]], [1, 0]
// CHECK: vector.transfer_write %[[ROWS]]{{.*}} vector<16x2xf32>
func.func private @columns(%b: tensor<8x64x3xf32>) -> tensor<8x64x2xf32>
    attributes {xt.kernel, xt.symbols = []} {
  %x = "xt.slice"(%b) {starts = [0, 0, 1], limits = [8, 64, 2], strides = [1, 1, 1]} : (tensor<8x64x3xf32>) -> tensor<8x64x1xf32>
  %y = "xt.slice"(%b) {starts = [0, 0, 2], limits = [8, 64, 3], strides = [1, 1, 1]} : (tensor<8x64x3xf32>) -> tensor<8x64x1xf32>
  %c = "xtv.concatenate"(%y, %x) {axis = 2 : i64} : (tensor<8x64x1xf32>, tensor<8x64x1xf32>) -> tensor<8x64x2xf32>
  return %c : tensor<8x64x2xf32>
}

// -----
// Sizes that are not known: tiles that are one operand's need no clamps; one across bounds reads those that it lies in.
// CHECK-LABEL: func.func private @unknown(
// CHECK-SAME: %[[A:[^:]*]]: memref<?x?xf32>, %[[B:[^:]*]]: memref<?x?xf32>, %[[C:[^:]*]]: memref<?x?xf32>
// CHECK: scf.if
// CHECK-NEXT: arith.subi
// CHECK-NEXT: vector.transfer_read %[[C]]
// CHECK: scf.if
// CHECK: vector.transfer_read %[[B]][
// CHECK: scf.if
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK: scf.if
// CHECK: arith.select %{{.*}} : vector<32xi1>, vector<32xf32>
// CHECK: scf.if
// CHECK: arith.select %{{.*}} : vector<32xi1>, vector<32xf32>
func.func private @unknown(%a: tensor<?x?xf32, ["d0", "d1"]>, %b: tensor<?x?xf32, ["d0", "d2"]>, %c: tensor<?x?xf32, ["d0", "d3"]>) -> tensor<?x?xf32, ["d0", "d4"]>
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2", "d3", "d4"]} {
  %y = "xtv.concatenate"(%a, %b, %c) {axis = 1 : i64} : (tensor<?x?xf32, ["d0", "d1"]>, tensor<?x?xf32, ["d0", "d2"]>, tensor<?x?xf32, ["d0", "d3"]>) -> tensor<?x?xf32, ["d0", "d4"]>
  return %y : tensor<?x?xf32, ["d0", "d4"]>
}

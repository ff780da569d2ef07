// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// Movement with affine access is in the indexing map of the one generic; the scalar constant in its body.
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1) -> (d1 * 2 + 1, d0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (-d1 + 2)>
// CHECK-LABEL: func.func private @movement
// CHECK-SAME: %[[X:.*]]: tensor<7x4xf32>, %[[Y:.*]]: tensor<3xf32>
func.func private @movement(%x: tensor<7x4xf32>, %y: tensor<3xf32>) -> tensor<4x3xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK-NOT: tensor.extract
  // CHECK: linalg.generic {indexing_maps = [#[[IN]], #[[ROW]], #[[OUT]]], iterator_types = ["parallel", "parallel"]}
  // CHECK-SAME: ins(%[[X]], %[[Y]] : tensor<7x4xf32>, tensor<3xf32>)
  %0 = "xt.slice"(%x) {starts = [1, 0], limits = [7, 4], strides = [2, 1]} : (tensor<7x4xf32>) -> tensor<3x4xf32>
  %1 = "xt.transpose"(%0) {perm = [1, 0]} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %2 = "xt.reverse"(%y) {axes = [0]} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "xt.mul"(%1, %2) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: linalg.generic
  // CHECK: %[[C:.*]] = arith.constant 2.000000e+00 : f32
  // CHECK: arith.addf %{{.*}}, %[[C]]
  %c = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %4 = "xt.add"(%3, %c) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  return %4 : tensor<4x3xf32>
}

// A start that is a symbol is read by coordinate.
// CHECK-LABEL: func.func private @symbolic_start
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[D0:.*]]: index
func.func private @symbolic_start(%x: tensor<?xf32, ["d0"]>) -> tensor<2xf32>
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  // CHECK: %[[START:.*]] = arith.addi %[[D0]], %{{.*}}
  // CHECK: linalg.generic
  // CHECK: %[[I:.*]] = linalg.index 0
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[START]]
  // CHECK: tensor.extract %[[X]][%[[AT]]]
  %0 = "xt.slice"(%x) {starts = ["d0 - 2"], limits = ["d0"], strides = [1]} : (tensor<?xf32, ["d0"]>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// A pad that its kernel stores is a tensor.pad of what is computed; elsewhere it is a generic like any other.
// CHECK-LABEL: func.func private @stored_pad
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: %[[P:.*]] = tensor.pad %[[Y]] low[1, 0] high[2, 0] {
// CHECK: return %[[P]] : tensor<?x4xf32>
func.func private @stored_pad(%x: tensor<?x4xf32, ["d0", 4]>) -> tensor<?x4xf32, ["d0 + 3", 4]>
    attributes {xt.kernel, xt.symbols = ["d0"]} {
  %0 = "xt.neg"(%x) : (tensor<?x4xf32, ["d0", 4]>) -> tensor<?x4xf32, ["d0", 4]>
  %1 = "xt.pad"(%0) {low = [1, 0], high = [2, 0], interior = [0, 0], mode = "constant", value = 0.0 : f64, xcc.stored} : (tensor<?x4xf32, ["d0", 4]>) -> tensor<?x4xf32, ["d0 + 3", 4]>
  return %1 : tensor<?x4xf32, ["d0 + 3", 4]>
}

// What is mirrored a few times needs no division.
// CHECK-LABEL: func.func private @mirrored
// CHECK: linalg.index 0
// CHECK-NOT: arith.remsi
// CHECK: tensor.extract
func.func private @mirrored(%x: tensor<8xf32>) -> tensor<15xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.pad"(%x) {low = [7], high = [0], interior = [0], mode = "reflect", value = 0.0 : f64} : (tensor<8xf32>) -> tensor<15xf32>
  return %0 : tensor<15xf32>
}

// CHECK-LABEL: func.func private @mirrored_again
// CHECK-COUNT-2: arith.maxsi
// CHECK-NOT: arith.remsi
// CHECK: tensor.extract
func.func private @mirrored_again(%x: tensor<8xf32>) -> tensor<16xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.pad"(%x) {low = [8], high = [0], interior = [0], mode = "reflect", value = 0.0 : f64} : (tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// CHECK-LABEL: func.func private @mirrored_often
// CHECK: arith.remsi
func.func private @mirrored_often(%x: tensor<?xf32, ["d0"]>) -> tensor<?xf32, ["d0 + 8"]> attributes {xt.kernel, xt.symbols = ["d0"]} {
  %0 = "xt.pad"(%x) {low = [8], high = [0], interior = [0], mode = "reflect", value = 0.0 : f64} : (tensor<?xf32, ["d0"]>) -> tensor<?xf32, ["d0 + 8"]>
  return %0 : tensor<?xf32, ["d0 + 8"]>
}

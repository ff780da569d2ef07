// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COL:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func private @broadcasting
func.func private @broadcasting(%x: tensor<3x1xf32>, %y: tensor<7xf32>) -> tensor<3x7xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: linalg.generic {indexing_maps = [#[[COL]], #[[ROW]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
  %0 = "xt.add"(%x, %y) : (tensor<3x1xf32>, tensor<7xf32>) -> tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}

// A divisor that may be 0 or -1 is replaced before the division, which would trap.
// CHECK-LABEL: func.func private @divide
func.func private @divide(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
  // CHECK: arith.divsi %{{.*}}, %[[SAFE]]
  %0 = "xt.div"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// A known divisor needs no guard; unsigned types are signless with unsigned ops.
// CHECK-LABEL: func.func private @divide_by_constant
// CHECK-SAME: tensor<4xi8>) -> tensor<4xi8>
func.func private @divide_by_constant(%x: tensor<4xui8>) -> tensor<4xui8> attributes {xt.kernel, xt.symbols = []} {
  // CHECK-NOT: arith.select
  // CHECK: arith.divui
  // CHECK-NOT: arith.select
  // CHECK: return
  %c = "xt.constant"() {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "xt.div"(%x, %c) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// Functions of narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: func.func private @narrow
func.func private @narrow(%x: tensor<4xbf16>) -> tensor<4xbf16> attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
  // CHECK: %[[EXP:.*]] = math.exp %[[WIDE]] : f32
  // CHECK: arith.truncf %[[EXP]] : f32 to bf16
  %0 = "xt.exp"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// RUN: %python -c "import numpy as np, safetensors.numpy as s; s.save_file({'w': np.ones((4, 3), 'f4'), 's': np.ones(4, 'f4')}, r'%t.safetensors')"
// RUN: %xcc_opt %s --pass-pipeline="fold-weights" --weights=%t.safetensors --verify-each | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="fold-weights" --verify-each | filecheck %s --check-prefix=UNKNOWN

// Weights that are in no store stay as they are.
// UNKNOWN: xt.transpose
// UNKNOWN: xt.mul

// CHECK-LABEL: func.func @factor(
// CHECK-NOT: xt.transpose
// CHECK-NOT: xt.mul
// CHECK: %[[W:.*]] = "xt.weight"() {name = "w.transpose.mul"} : () -> tensor<3x4xf32>
// CHECK: %[[Y:.*]] = "xt.dot_general"(%{{.*}}, %[[W]])
// CHECK: return %[[Y]]
func.func @factor(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<4x3xf32>
  %s = "xt.weight"() {name = "s"} : () -> tensor<4xf32>
  %t = "xt.transpose"(%w) {perm = [1, 0]} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %0 = "xt.dot_general"(%x, %t) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = "xt.mul"(%0, %s) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

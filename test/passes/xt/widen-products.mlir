// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="widen-products, form-kernels{prologue=broadcast,widen}" | filecheck %s

// The first operand is widened by the kernel that makes it; the weight is read in 16 bits.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = "xt.weight"() {name = "w"} {{.*}} -> tensor<64x32xf16>
// CHECK: %[[X:.*]] = "xtv.dispatch"({{.*}} -> tensor<4x64xf32>
// CHECK: "xtv.dispatch"(%[[X]], %[[W]]) {{.*}} : (tensor<4x64xf32>, tensor<64x32xf16>) -> tensor<4x32xf16>
// CHECK: func.func private
// CHECK: %[[Y:.*]] = "xt.exp"
// CHECK: "xt.convert"(%[[Y]]) {{.*}} -> tensor<4x64xf32>
// CHECK: func.func private
// CHECK-NOT: xt.convert
// CHECK: "xt.dot_general"
// CHECK-NOT: xt.convert
func.func @main(%x: tensor<4x64xf16>) -> tensor<4x32xf16> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<64x32xf16>
  %e = "xt.exp"(%x) : (tensor<4x64xf16>) -> tensor<4x64xf16>
  %y = "xt.dot_general"(%e, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x64xf16>, tensor<64x32xf16>) -> tensor<4x32xf16>
  return %y : tensor<4x32xf16>
}

// RUN: %xcc_opt %s --pass-pipeline=multiplied-types --target=amdgcn --chip=gfx942 | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline=multiplied-types --target=amdgcn --chip=gfx1100 | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline=multiplied-types --target=nvptx --chip=sm_80 | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline=multiplied-types --target=amdgcn --chip=gfx950 | filecheck %s --check-prefix=HAS
// RUN: %xcc_opt %s --pass-pipeline=multiplied-types --target=amdgcn --chip=gfx1201 | filecheck %s --check-prefix=HAS

// CHECK-LABEL: @product
// CHECK: %[[A:.*]] = "xt.convert"(%{{.*}}) {dtype = f16,
// CHECK: %[[B:.*]] = "xt.convert"(%{{.*}}) {dtype = f16,
// CHECK: "xt.dot_general"(%[[A]], %[[B]]) {dtype = f32, {{.*}}(tensor<64x32xf16>, tensor<32x16xf16>) -> tensor<64x16xf32>
// HAS-LABEL: @product
// HAS-NOT: xt.convert
func.func @product(%a: tensor<64x32xf8E4M3FN>, %b: tensor<32x16xf8E4M3FN>) -> tensor<64x16xf32> {
  %y = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<64x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// Two types in one product: no instruction takes them here.
// CHECK-LABEL: @mixed
// CHECK-COUNT-2: xt.convert
// HAS-LABEL: @mixed
// HAS-COUNT-2: xt.convert
func.func @mixed(%a: tensor<64x32xf8E4M3FN>, %b: tensor<32x16xf8E5M2>) -> tensor<64x16xf32> {
  %y = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<64x32xf8E4M3FN>, tensor<32x16xf8E5M2>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

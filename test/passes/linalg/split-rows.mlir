// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},split-rows,tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=amdgcn},split-rows,tile,mlir(canonicalize),mlir(cse)" --target=amdgcn --chip=gfx942 | filecheck %s --check-prefix=AMD
// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},split-rows" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=DECIDED
// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=PLAIN

// DECIDED: func.func private @decode(
// DECIDED-SAME: xcc.splits = 16
// PLAIN: scf.forall {{.*}} in (8)
// PLAIN-NOT: scf.forall

// One query of 8 heads: the keys are cut into 16 parts, whose maxima and sums are arguments between output and symbols.
// CHECK-LABEL: func.func private @decode(
// CHECK-SAME: %[[OUT:arg3]]: memref<8x64xf16>, %[[TOP:.*]]: memref<16x8xf32>, %[[TOTAL:.*]]: memref<16x8xf32>, %[[SUM:.*]]: memref<16x8x64xf32>)
// CHECK-SAME: splits = 16
// CHECK-SAME: xcc.scratch = ["512", "512", "32768"]
// CHECK-SAME: xt.scratch_dims = {{\[}}[16, 8], [16, 8], [16, 8, 64]]
// A part has 256 of the 4096 keys.
// CHECK: scf.forall (%[[PART:.*]], %[[HEAD:.*]]) in (16, 8)
// CHECK: %[[STEPS:.*]] = arith.muli %[[PART]], %c64
// CHECK: %[[FIRST:.*]] = arith.divui %[[STEPS]], %c16
// CHECK: %[[KEY:.*]] = arith.muli %[[FIRST]], %c64
// CHECK: scf.for %{{.*}} = %[[KEY]] to %{{.*}} step %c64
// CHECK: vector.contract
// CHECK: vector.contract
// CHECK-DAG: memref.store %{{.*}}, %[[TOP]][%[[PART]], %[[HEAD]]]
// CHECK-DAG: memref.store %{{.*}}, %[[TOTAL]][%[[PART]], %[[HEAD]]]
// CHECK-DAG: vector.transfer_write %{{.*}}, %[[SUM]][%[[PART]], %[[HEAD]], %c0]
// All parts of a row at once.
// CHECK: scf.forall (%[[HEAD:.*]]) in (8)
// CHECK-DAG: %[[TOPS:.*]] = vector.transfer_read %[[TOP]][%c0, %[[HEAD]]]{{.*}} vector<16xf32>
// CHECK-DAG: %[[SUMS:.*]] = vector.transfer_read %[[SUM]][%c0, %[[HEAD]], %c0]{{.*}} vector<16x64xf32>
// CHECK: %[[ALL:.*]] = vector.multi_reduction <maximumf>, %[[TOPS]]
// CHECK: math.exp2
// CHECK: vector.multi_reduction <add>, {{.*}} [0] : vector<16x64xf32> to vector<64xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]][%[[HEAD]], %c0]

// AMD-LABEL: func.func private @decode(
// AMD-SAME: splits = 32
// AMD: scf.forall {{.*}} in (32, 8)
// AMD: scf.forall {{.*}} in (8)
func.func private @decode(%q: tensor<1x8x1x64xf16>, %k: tensor<1x8x4096x64xf16>, %v: tensor<1x8x4096x64xf16>) -> tensor<1x8x1x64xf16> attributes {xt.kernel} {
  %0 = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.125 : f64, softcap = 0.0 : f64} : (tensor<1x8x1x64xf16>, tensor<1x8x4096x64xf16>, tensor<1x8x4096x64xf16>) -> tensor<1x8x1x64xf16>
  return %0 : tensor<1x8x1x64xf16>
}

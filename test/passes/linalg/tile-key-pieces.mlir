// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=nvptx},split-rows,tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="xt-decompose{fused=true},xt-to-linalg,mlir(canonicalize),mlir(cse),configure{target=amdgcn},split-rows,tile,mlir(canonicalize),mlir(cse)" --target=amdgcn --chip=gfx942 | filecheck %s

// Past keys in a loop without masks, then the new one, which needs no matrix instruction.
// CHECK-LABEL: func.func private @decode(
// CHECK-SAME: %arg0: memref<16x32x64xf16>, %[[PAST:arg1]]: memref<16x32x1024x64xf16>, %[[NEW:arg2]]: memref<16x32x64xf16>
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[KEY:.*]] = %c0 to %c1024 step %c64
// CHECK: vector.transfer_read %[[PAST]][%{{.*}}, %{{.*}}, %[[KEY]], %c0], %{{[a-z0-9_]*}} {in_bounds
// CHECK-COUNT-2: vector.contract
// CHECK: scf.yield
// CHECK: vector.transfer_read %[[NEW]][{{.*}} vector<64xf16>
// CHECK-NOT: vector.contract
// CHECK: arith.maxnumf %{{.*}}, %[[LOOP]]#0
// CHECK: vector.transfer_write
func.func private @decode(%q: tensor<16x32x1x64xf16>, %k: tensor<16x32x1024x64xf16>, %n: tensor<16x32x1x64xf16>) -> tensor<16x32x1x64xf16> attributes {xt.kernel} {
  %0 = "xtv.concatenate"(%k, %n) {axis = 2 : i64} : (tensor<16x32x1024x64xf16>, tensor<16x32x1x64xf16>) -> tensor<16x32x1025x64xf16>
  %1 = "xt.attention"(%q, %0, %0) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.125 : f64, softcap = 0.0 : f64} : (tensor<16x32x1x64xf16>, tensor<16x32x1025x64xf16>, tensor<16x32x1025x64xf16>) -> tensor<16x32x1x64xf16>
  return %1 : tensor<16x32x1x64xf16>
}

// Sizes that only a run knows: two loops with masks, the second of places behind the first one's.
// CHECK-LABEL: func.func private @some(
// CHECK-SAME: %[[NEW:arg0]]: memref<16x32x?x64xf16>, %[[PAST:arg1]]: memref<16x32x?x64xf16>, {{.*}}%[[SIZE:arg4]]: index
// CHECK: %[[ONE:.*]]:3 = scf.for %[[KEY:.*]] = %c0 to
// CHECK: vector.transfer_read %[[PAST]][%{{.*}}, %{{.*}}, %[[KEY]], %c0], %{{.*}}, %{{.*}}
// CHECK: scf.yield
// CHECK: scf.for %[[KEY:.*]] = {{.*}} iter_args(%{{.*}} = %[[ONE]]#0,
// CHECK: %[[AT:.*]] = arith.subi %[[KEY]], %[[SIZE]]
// CHECK: vector.transfer_read %[[NEW]][%{{.*}}, %{{.*}}, %[[AT]], %c0], %{{.*}}, %{{.*}}
func.func private @some(%q: tensor<16x32x?x64xf16, [16, 32, "d0", 64]>, %k: tensor<16x32x?x64xf16, [16, 32, "d1", 64]>) -> tensor<16x32x?x64xf16, [16, 32, "d0", 64]> attributes {xt.kernel, xt.symbols = ["d0", "d1"]} {
  %0 = "xtv.concatenate"(%k, %q) {axis = 2 : i64} : (tensor<16x32x?x64xf16, [16, 32, "d1", 64]>, tensor<16x32x?x64xf16, [16, 32, "d0", 64]>) -> tensor<16x32x?x64xf16, [16, 32, "d0 + d1", 64]>
  %1 = "xt.attention"(%q, %0, %0) {causal = true, causal_offset = ["d1"], nan_rows = false, scale = 0.125 : f64, softcap = 0.0 : f64} : (tensor<16x32x?x64xf16, [16, 32, "d0", 64]>, tensor<16x32x?x64xf16, [16, 32, "d0 + d1", 64]>, tensor<16x32x?x64xf16, [16, 32, "d0 + d1", 64]>) -> tensor<16x32x?x64xf16, [16, 32, "d0", 64]>
  return %1 : tensor<16x32x?x64xf16, [16, 32, "d0", 64]>
}

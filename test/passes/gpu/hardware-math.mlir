// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=hardware-math | filecheck %s
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 --pass-pipeline=hardware-math | filecheck %s --check-prefix=AMD

// NVIDIA's instruction, which has scalars alone and does not know f64.
// CHECK-LABEL: func.func @rsqrt(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%{{.*}}) : (f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.sqrt.f64"
// CHECK: arith.divf
// AMD-LABEL: func.func @rsqrt(
// AMD: llvm.call_intrinsic "llvm.sqrt.v2f32"
// AMD: arith.divf
func.func @rsqrt(%x: vector<2xf32>, %d: f64) -> (vector<2xf32>, f64) {
  %y = math.rsqrt %x : vector<2xf32>
  %z = math.rsqrt %d : f64
  return %y, %z : vector<2xf32>, f64
}

// exp(x) = exp2(t) * (1 + r ln 2); the range is cut so that r stays finite.
// CHECK-LABEL: func.func @exp(
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: %[[LOST:.*]] = math.fma
// CHECK: %[[R:.*]] = math.fma
// CHECK: llvm.call_intrinsic "llvm.exp2.v4f32"(%[[T]])
// CHECK: math.fma %[[R]]
// CHECK: arith.mulf
// CHECK-NOT: math.exp
func.func @exp(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.exp %x : vector<4xf32>
  return %y : vector<4xf32>
}

// 16-bit types go through f32.
// CHECK-LABEL: func.func @floor(
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: llvm.call_intrinsic "llvm.floor.f32"
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @floor(%x: f16) -> f16 {
  %y = math.floor %x : f16
  return %y : f16
}

// CHECK-LABEL: func.func @wide(
// CHECK: llvm.call_intrinsic "llvm.sqrt.f64"
// CHECK: math.exp
func.func @wide(%x: f64) -> f64 {
  %y = math.sqrt %x : f64
  %z = math.exp %y : f64
  return %z : f64
}

// exp2 that may be approximate is the chip's instruction, of scalars; any other knows the numbers below the normal ones.
// CHECK-LABEL: func.func @exp2(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: llvm.call_intrinsic "llvm.exp2.v2f32"
// AMD-LABEL: func.func @exp2(
// AMD-COUNT-2: llvm.call_intrinsic "llvm.amdgcn.exp2.f32"
func.func @exp2(%x: vector<2xf32>) -> (vector<2xf32>, vector<2xf32>) {
  %y = math.exp2 %x fastmath<afn> : vector<2xf32>
  %z = math.exp2 %x : vector<2xf32>
  return %y, %z : vector<2xf32>, vector<2xf32>
}

// So is a reciprocal (AMD's comes of LLVM's division); not where numbers below the normal ones are to be kept.
// CHECK-LABEL: func.func @reciprocal(
// CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK: arith.divf %{{.*}} fastmath<contract,afn>
// CHECK: arith.divf %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} : f32
// AMD-LABEL: func.func @reciprocal(
// AMD: arith.divf %{{.*}} fastmath<afn>
func.func @reciprocal(%x: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %y = arith.divf %one, %x fastmath<afn> : f32
  %z = arith.divf %one, %x fastmath<contract,afn> : f32
  %w = arith.divf %one, %x : f32
  return %y, %z, %w : f32, f32, f32
}

// A mean: the reciprocal of a number of elements and multiply-adds, no division; a quotient by any other value stays one.
// CHECK-LABEL: func.func @mean(
// CHECK: %[[N:.*]] = arith.sitofp
// CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[N]])
// CHECK-COUNT-4: math.fma
// CHECK: arith.select
// CHECK: arith.divf
// CHECK-NOT: arith.divf
// AMD-LABEL: func.func @mean(
// AMD-COUNT-2: arith.divf
func.func @mean(%x: f32, %n: i64, %s: f32) -> (f32, f32) {
  %f = arith.sitofp %n : i64 to f32
  %y = arith.divf %x, %f : f32
  %z = arith.divf %x, %s : f32
  return %y, %z : f32, f32
}

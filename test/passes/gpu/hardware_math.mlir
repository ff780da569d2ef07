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

// What ends in a 16-bit type has the short form; a product of f32 beside it has not.
// CHECK-LABEL: func.func @sigmoid(
// CHECK-NOT: math.fma
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: vector.extract %[[T]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[D:.*]] = arith.addf
// CHECK: arith.divf %{{.*}}, %[[D]] fastmath<afn>
// AMD-LABEL: func.func @sigmoid(
// AMD: llvm.call_intrinsic "llvm.amdgcn.exp2.f32"
// CHECK-LABEL: func.func @bf16_sigmoid(
// CHECK-NOT: math.fma
// CHECK: llvm.call_intrinsic "llvm.exp2.v4f32"
// CHECK: arith.divf %{{.*}}, %{{.*}} fastmath<afn>
// CHECK-LABEL: func.func @wide_sigmoid(
// CHECK: math.fma
// CHECK-NOT: afn
// CHECK: return
func.func @sigmoid(%x: vector<4xf32>) -> vector<4xf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %p = arith.mulf %s, %x : vector<4xf32>
  %y = arith.truncf %p : vector<4xf32> to vector<4xf16>
  return %y : vector<4xf16>
}
func.func @bf16_sigmoid(%x: vector<4xf32>) -> vector<4xbf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %y = arith.truncf %s : vector<4xf32> to vector<4xbf16>
  return %y : vector<4xbf16>
}
func.func @wide_sigmoid(%x: vector<4xf32>) -> (vector<4xf16>, vector<4xf32>) {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %y = arith.truncf %s : vector<4xf32> to vector<4xf16>
  return %y, %s : vector<4xf16>, vector<4xf32>
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

// erf that ends in a 16-bit type is shorter.
// CHECK-LABEL: func.func @erf(
// CHECK-NOT: math.erf
// CHECK: ex2.approx
// CHECK: llvm.copysign
// CHECK: arith.truncf
// CHECK-LABEL: func.func @precise_erf(
// CHECK: math.erf
func.func @erf(%x: f32) -> f16 {
  %y = math.erf %x : f32
  %z = arith.mulf %x, %y : f32
  %t = arith.truncf %z : f32 to f16
  return %t : f16
}
func.func @precise_erf(%x: f32) -> (f32, f16) {
  %y = math.erf %x : f32
  %t = arith.truncf %y : f32 to f16
  return %y, %t : f32, f16
}

// gelu in one: no 1 + erf that cancels.
// CHECK-LABEL: func.func @gelu(
// CHECK-NOT: math.erf
// CHECK: ex2.approx
// CHECK: %[[TAIL:.*]] = vector.from_elements
// CHECK: %[[POSITIVE:.*]] = arith.maximumf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: %[[LESS:.*]] = arith.negf
// CHECK: %[[Y:.*]] = math.fma %[[LESS]], %[[TAIL]], %[[POSITIVE]]
// CHECK: arith.truncf %[[Y]]
func.func @gelu(%x: vector<4xf32>) -> vector<4xf16> {
  %half = arith.constant dense<0.5> : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<4xf32>
  %c = arith.constant dense<0.707106769> : vector<4xf32>
  %h = arith.mulf %x, %half : vector<4xf32>
  %z = arith.mulf %x, %c : vector<4xf32>
  %e = math.erf %z : vector<4xf32>
  %s = arith.addf %e, %one : vector<4xf32>
  %y = arith.mulf %h, %s : vector<4xf32>
  %t = arith.truncf %y : vector<4xf32> to vector<4xf16>
  return %t : vector<4xf16>
}

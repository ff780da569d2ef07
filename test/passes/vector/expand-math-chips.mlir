// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v4 --pass-pipeline="expand-math" | filecheck %s --check-prefixes=CHECK,WIDE
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="expand-math" | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="expand-math" | filecheck %s --check-prefix=GPU

// Where there is an instruction for x * 2^n, vectors keep the op for it. What is too small has an exponent far below those
// of subnormal numbers.
// CHECK-LABEL: func.func @exp
// WIDE: arith.constant dense<-415.8
// PLAIN: arith.constant dense<-171.
// WIDE-NOT: arith.shli
// WIDE: "xcc.scale"(%{{.*}}) : (vector<4x8xf32>, vector<4x8xf32>, vector<4x8xi32>) -> vector<4x8xf32>
// PLAIN-NOT: xcc.scale
// PLAIN-COUNT-2: arith.shli
func.func @exp(%x: vector<4x8xf32>) -> vector<4x8xf32> {
  %y = math.exp %x : vector<4x8xf32>
  return %y : vector<4x8xf32>
}

// Sines of lanes that are all below 2^16 have a branch of their own, without f64. GPUs have none.
// CHECK-LABEL: func.func @sin
// CHECK: %[[NEAR:.*]] = vector.multi_reduction <and>, %{{.*}} : vector<4x8xi1> to i1
// CHECK: scf.if %[[NEAR]] -> (vector<4x8xf32>, vector<4x8xi32>) {
// CHECK-NOT: f64
// CHECK: } else {
// CHECK: arith.extf %{{.*}} : vector<4x8xf32> to vector<4x8xf64>
// GPU-LABEL: func.func @sin
// GPU-NOT: scf.if
// GPU: return
func.func @sin(%x: vector<4x8xf32>) -> vector<4x8xf32> {
  %y = math.sin %x : vector<4x8xf32>
  return %y : vector<4x8xf32>
}

// CHECK-LABEL: func.func @scalar
// CHECK-NOT: xcc.scale
// CHECK: return
func.func @scalar(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// max(x, 0) - |x| * W(|x|), no erf: one polynomial of degree 18, or one of degree 5 whose coefficients are looked up.
// CHECK-LABEL: func.func @gelu
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// CHECK: %[[T:.*]] = math.absf %[[X]]
// PLAIN-COUNT-19: math.fma
// WIDE-COUNT-2: math.fma
// WIDE-COUNT-6: "xcc.lookup"(%{{.*}}) {table = array<f32: {{.*}}>} : (vector<8xi32>) -> vector<8xf32>
// CHECK: %[[ABOVE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[X]]
// CHECK: %[[Y:.*]] = math.fma %{{.*}}, %{{.*}}, %[[ABOVE]]
// CHECK: return %[[Y]]
func.func @gelu(%x: vector<8xf32>) -> vector<8xf32> {
  %c = arith.constant dense<0.70710678> : vector<8xf32>
  %half = arith.constant dense<0.5> : vector<8xf32>
  %one = arith.constant dense<1.0> : vector<8xf32>
  %a = arith.mulf %x, %c : vector<8xf32>
  %b = math.erf %a : vector<8xf32>
  %d = arith.addf %b, %one : vector<8xf32>
  %h = arith.mulf %x, %half : vector<8xf32>
  %y = arith.mulf %h, %d : vector<8xf32>
  return %y : vector<8xf32>
}

// The sum with another number is no gelu.
// CHECK-LABEL: func.func @other
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00>
// CHECK: arith.addf %{{.*}}, %[[TWO]]
func.func @other(%x: vector<8xf32>) -> vector<8xf32> {
  %c = arith.constant dense<0.70710678> : vector<8xf32>
  %half = arith.constant dense<0.5> : vector<8xf32>
  %two = arith.constant dense<2.0> : vector<8xf32>
  %a = arith.mulf %x, %c : vector<8xf32>
  %b = math.erf %a : vector<8xf32>
  %d = arith.addf %b, %two : vector<8xf32>
  %h = arith.mulf %x, %half : vector<8xf32>
  %y = arith.mulf %h, %d : vector<8xf32>
  return %y : vector<8xf32>
}

// Lanes of up to 32 bits and places in memory are divided as floats, which vectors have an instruction for; not by constants.
// CHECK-LABEL: func.func @remainder
// WIDE: %[[Q:.*]] = arith.divf %{{.*}} : vector<8xf64>
// WIDE: math.trunc %[[Q]]
// WIDE-NOT: arith.remsi
// WIDE: arith.divf %{{.*}} : vector<8xf32>
// PLAIN-COUNT-2: arith.rem
// CHECK: arith.remsi
// CHECK: return
func.func @remainder(%a: vector<8xindex>, %b: vector<8xindex>, %c: vector<8xi16>, %d: vector<8xi16>) -> (vector<8xindex>, vector<8xi16>, vector<8xindex>) {
  %x = arith.remsi %a, %b : vector<8xindex>
  %y = arith.remui %c, %d : vector<8xi16>
  %seven = arith.constant dense<7> : vector<8xindex>
  %z = arith.remsi %a, %seven : vector<8xindex>
  return %x, %y, %z : vector<8xindex>, vector<8xi16>, vector<8xindex>
}

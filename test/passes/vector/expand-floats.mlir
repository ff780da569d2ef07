// RUN: %xcc_opt %s --pass-pipeline="expand-floats" | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="expand-floats{bf16=false halves=true}" | filecheck %s --check-prefix=HALVES

// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="expand-floats" | filecheck %s --check-prefix=X86
// RUN: %xcc_opt %s --target=cpu --chip=neoverse-v1 --pass-pipeline="expand-floats" | filecheck %s --check-prefix=ARM

// CHECK-LABEL: func.func @add
// CHECK: arith.shli {{.*}} : vector<8xi32>
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: arith.shrui
// CHECK: arith.trunci {{.*}} : vector<8xi32> to vector<8xi16>
// CHECK: arith.bitcast {{.*}} : vector<8xi16> to vector<8xbf16>
func.func @add(%x: vector<8xbf16>) -> vector<8xbf16> {
  %y = arith.addf %x, %x : vector<8xbf16>
  return %y : vector<8xbf16>
}

// CHECK-LABEL: func.func @narrow
// CHECK-NOT: arith.truncf
// CHECK: arith.bitcast {{.*}} : i8 to f8E4M3FN
func.func @narrow(%x: f32) -> f8E4M3FN {
  %y = arith.truncf %x : f32 to f8E4M3FN
  return %y : f8E4M3FN
}

// What the target can do stays.
// CHECK-LABEL: func.func @half
// CHECK-NEXT: arith.truncf
func.func @half(%x: f32) -> f16 {
  %y = arith.truncf %x : f32 to f16
  return %y : f16
}

// By two in a register: no conversion and no f32.
// HALVES-LABEL: func.func @widen
// HALVES: vector.bitcast {{.*}} : vector<8xi8> to vector<2xi32>
// HALVES: vector.shuffle {{.*}} [0, 2, 1, 3] : vector<2xi32>, vector<2xi32>
// HALVES: arith.mulf {{.*}} : vector<8xf16>
// HALVES-NOT: f32
// HALVES: return
func.func @widen(%x: vector<8xf8E4M3FN>) -> vector<8xf16> {
  %y = arith.extf %x : vector<8xf8E4M3FN> to vector<8xf16>
  return %y : vector<8xf16>
}

// Three instructions on x86, of which one waits for the second operand; ARM's own has NaN. A constant is none.
// X86-LABEL: func.func @extremes(
// X86-SAME: %[[X:.*]]: vector<8xf32>, %[[Y:.*]]: vector<8xf32>, %[[S:.*]]: f32)
// X86: %[[MORE:.*]] = arith.cmpf ogt, %[[X]], %[[Y]]
// X86: %[[MAX:.*]] = arith.select %[[MORE]], %[[X]], %[[Y]]
// X86: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// X86: %[[A:.*]] = arith.select %[[NAN]], %[[X]], %[[MAX]]
// X86: arith.cmpf olt, %[[A]], %[[Y]]
// X86: arith.maximumf %{{.*}}, %{{.*}} : vector<8xf32>
// X86: arith.maximumf %[[S]], %[[S]] : f32
// ARM-LABEL: func.func @extremes(
// ARM: arith.maximumf
// ARM: arith.minimumf
func.func @extremes(%x: vector<8xf32>, %y: vector<8xf32>, %s: f32) -> (vector<8xf32>, f32) {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %a = arith.maximumf %x, %y : vector<8xf32>
  %b = arith.minimumf %a, %y : vector<8xf32>
  %c = arith.maximumf %b, %zero : vector<8xf32>
  %d = arith.maximumf %s, %s : f32
  return %c, %d : vector<8xf32>, f32
}

// RUN: %xcc_opt %s --pass-pipeline="expand-math" | filecheck %s

// CHECK-LABEL: func.func @exp
// CHECK-SAME: %[[X:.*]]: vector<4x8xf32>
// CHECK-NOT: math.exp
// Where the result is 0 its exponent is far from those of subnormal numbers.
// CHECK: arith.constant dense<-1.040000e+02>
// CHECK: %[[LESS:.*]] = arith.cmpf olt
// CHECK: arith.select %[[LESS]]
// CHECK: math.fma {{.*}} : vector<4x8xf32>
// CHECK: arith.shli {{.*}} : vector<4x8xi32>
// CHECK: arith.mulf {{.*}} : vector<4x8xf32>
func.func @exp(%x: vector<4x8xf32>) -> vector<4x8xf32> {
  %y = math.exp %x : vector<4x8xf32>
  return %y : vector<4x8xf32>
}

// Half precision is computed in f32.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK: arith.truncf {{.*}} : vector<8xf32> to vector<8xf16>
func.func @half(%x: vector<8xf16>) -> vector<8xf16> {
  %y = math.tanh %x : vector<8xf16>
  return %y : vector<8xf16>
}

// CHECK-LABEL: func.func @square
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: return %[[Y]]
func.func @square(%x: f32) -> f32 {
  %two = arith.constant 2.0 : f32
  %y = math.powf %x, %two : f32
  return %y : f32
}

// CHECK-LABEL: func.func @divide
// CHECK-SAME: %[[A:.*]]: vector<4xi32>, %[[B:.*]]: vector<4xi32>
// CHECK: %[[SAFE:.*]] = arith.select {{.*}}, {{.*}}, %[[B]]
// CHECK: arith.divsi %[[A]], %[[SAFE]]
func.func @divide(%a: vector<4xi32>, %b: vector<4xi32>) -> vector<4xi32> {
  %y = arith.divsi %a, %b : vector<4xi32>
  return %y : vector<4xi32>
}

// RUN: %xcc_opt %s --pass-pipeline=row-division --target=nvptx --chip=sm_90a | filecheck %s

// CHECK-LABEL: @shared
// CHECK: %[[I:.*]] = arith.divf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: %[[C:.*]] = vector.shape_cast %[[I]]
// CHECK: %[[B:.*]] = vector.broadcast %[[C]] : vector<4x1xf32> to vector<4x256xf32>
// CHECK: arith.mulf %{{.*}}, %[[B]]
func.func @shared(%x: vector<4x256xf32>, %s: vector<4xf32>) -> vector<4x256xf32> {
  %c = vector.shape_cast %s : vector<4xf32> to vector<4x1xf32>
  %b = vector.broadcast %c : vector<4x1xf32> to vector<4x256xf32>
  %y = arith.divf %x, %b : vector<4x256xf32>
  return %y : vector<4x256xf32>
}

// A divisor of its own for each element stays a division.
// CHECK-LABEL: @own
// CHECK: arith.divf %{{.*}} : vector<4x256xf32>
func.func @own(%x: vector<4x256xf32>, %s: vector<4x256xf32>) -> vector<4x256xf32> {
  %y = arith.divf %x, %s : vector<4x256xf32>
  return %y : vector<4x256xf32>
}

// So does one whose quotient is rounded to an integer: one unit would decide which.
// CHECK-LABEL: @rounded
// CHECK: arith.divf %{{.*}} : vector<4x256xf32>
// CHECK-NOT: arith.mulf
func.func @rounded(%x: vector<4x256xf32>, %s: vector<4x1xf32>, %z: vector<4x256xf32>) -> vector<4x256xi32> {
  %b = vector.broadcast %s : vector<4x1xf32> to vector<4x256xf32>
  %q = arith.divf %x, %b : vector<4x256xf32>
  %r = math.roundeven %q : vector<4x256xf32>
  %a = arith.addf %r, %z : vector<4x256xf32>
  %y = arith.fptosi %a : vector<4x256xf32> to vector<4x256xi32>
  return %y : vector<4x256xi32>
}

// RUN: %xcc_opt %s --pass-pipeline="expand-math" | filecheck %s

// A power of two is made of the bits of its exponent; no math library is called.
// CHECK-LABEL: func.func @double
// CHECK-NOT: call
// CHECK: arith.shli {{.*}} : i64
// CHECK: arith.bitcast {{.*}} : i64 to f64
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK: return
func.func @double(%x: f64) -> f64 {
  %y = math.exp %x : f64
  %z = math.tanh %y : f64
  return %z : f64
}

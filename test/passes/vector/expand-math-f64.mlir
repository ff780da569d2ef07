// RUN: %xcc_opt %s --pass-pipeline="expand-math{libm=true}" | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="expand-math" | filecheck %s --check-prefix=OWN

// f64 is left to LLVM and the C library.
// CHECK: func.func private @tanh(f64) -> f64
// CHECK-LABEL: func.func @double
// CHECK: math.exp
// CHECK: call @tanh

// On GPUs they are arithmetic: a power of two from the bits of the exponent.
// OWN-LABEL: func.func @double
// OWN-NOT: call
// OWN: arith.shli {{.*}} : i64
// OWN: arith.bitcast {{.*}} : i64 to f64
// OWN-NOT: math.exp
// OWN-NOT: math.tanh
// OWN: return
func.func @double(%x: f64) -> f64 {
  %y = math.exp %x : f64
  %z = math.tanh %y : f64
  return %z : f64
}

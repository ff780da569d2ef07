// RUN: %xcc_opt %s --pass-pipeline="expand-math{libm=true}" | filecheck %s

// f64 is left to LLVM and the C library.
// CHECK: func.func private @tanh(f64) -> f64
// CHECK-LABEL: func.func @double
// CHECK: math.exp
// CHECK: call @tanh
func.func @double(%x: f64) -> f64 {
  %y = math.exp %x : f64
  %z = math.tanh %y : f64
  return %z : f64
}

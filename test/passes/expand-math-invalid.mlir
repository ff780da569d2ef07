// RUN: not %xcc_opt %s --pass-pipeline=expand-math 2>&1 | filecheck %s

// CHECK: exp of f64 is not there on GPUs: convert to f32 before it, or compile for the CPU
func.func @double(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}

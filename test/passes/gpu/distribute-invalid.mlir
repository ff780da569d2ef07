// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=distribute --split-input-file --verify-diagnostics

// expected-error: vector.step has no layout: run assign-layouts before distribute
func.func @k(%o: memref<32xindex>) attributes {xt.kernel} {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (1) {
    %s = vector.step : vector<32xindex>
    vector.transfer_write %s, %o[%c0] {in_bounds = [true]} : vector<32xindex>, memref<32xindex>
  }
  return
}

// -----

// expected-error: the number of workgroups depends on memref.load
func.func @k(%x: memref<index>) attributes {xt.kernel} {
  %n = memref.load %x[] : memref<index>
  scf.forall (%i) in (%n) {
    memref.store %i, %x[] : memref<index>
  }
  return
}

// -----

func.func @k(%o: memref<256xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  // expected-error: xcc.instances cannot be obeyed: it has 64 threads, a warp 32
  scf.forall (%i) in (4) {
    %s = arith.constant {xcc.layout = ["tile=[256] register=[[64],[128]] lane=[[1],[2],[4],[8],[16]] warp=[[32]]"]} dense<0.0> : vector<256xf32>
    vector.transfer_write %s, %o[%c0] {in_bounds = [true]} : vector<256xf32>, memref<256xf32>
  } {xcc.instances = 4 : i64}
  return
}

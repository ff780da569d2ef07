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

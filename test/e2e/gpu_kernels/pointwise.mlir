// o = relu(x + y), 1024 elements a workgroup, masked at the end
func.func @pointwise(%x: memref<?xf32>, %y: memref<?xf32>, %o: memref<?xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0"], ["d0"]], xt.result_dims = [["d0"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c1024 = arith.constant 1024 : index
  %pad = arith.constant 0.0 : f32
  %blocks = arith.ceildivui %d0, %c1024 : index
  scf.forall (%i) in (%blocks) {
    %base = arith.muli %i, %c1024 : index
    %left = arith.subi %d0, %base : index
    %mask = vector.create_mask %left : vector<1024xi1>
    %a = vector.transfer_read %x[%base], %pad, %mask {in_bounds = [true]} : memref<?xf32>, vector<1024xf32>
    %b = vector.transfer_read %y[%base], %pad, %mask {in_bounds = [true]} : memref<?xf32>, vector<1024xf32>
    %zero = arith.constant dense<0.0> : vector<1024xf32>
    %s = arith.addf %a, %b : vector<1024xf32>
    %r = arith.maximumf %s, %zero : vector<1024xf32>
    vector.transfer_write %r, %o[%base], %mask {in_bounds = [true]} : vector<1024xf32>, memref<?xf32>
  }
  return
}

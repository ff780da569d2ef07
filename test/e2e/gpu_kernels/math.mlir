// many functions of one value: nothing may need a math library
func.func @math(%x: memref<?xf32>, %o: memref<?xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0"]], xt.result_dims = [["d0"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f32
  %blocks = arith.ceildivui %d0, %c256 : index
  scf.forall (%i) in (%blocks) {
    %base = arith.muli %i, %c256 : index
    %left = arith.subi %d0, %base : index
    %mask = vector.create_mask %left : vector<256xi1>
    %a = vector.transfer_read %x[%base], %pad, %mask {in_bounds = [true]} : memref<?xf32>, vector<256xf32>
    %e = math.exp %a : vector<256xf32>
    %t = math.tanh %a : vector<256xf32>
    %f = math.erf %a : vector<256xf32>
    %s = math.sin %a : vector<256xf32>
    %q = math.sqrt %e : vector<256xf32>
    %l = math.log %q : vector<256xf32>
    %n = math.floor %a : vector<256xf32>
    %b = math.absf %a : vector<256xf32>
    %r = math.rsqrt %e : vector<256xf32>
    %m = arith.remf %a, %e : vector<256xf32>
    %0 = arith.addf %e, %t : vector<256xf32>
    %1 = arith.addf %f, %s : vector<256xf32>
    %2 = arith.addf %q, %l : vector<256xf32>
    %3 = arith.addf %n, %b : vector<256xf32>
    %4 = arith.addf %r, %m : vector<256xf32>
    %5 = arith.addf %0, %1 : vector<256xf32>
    %6 = arith.addf %2, %3 : vector<256xf32>
    %7 = arith.addf %5, %6 : vector<256xf32>
    %8 = arith.addf %7, %4 : vector<256xf32>
    vector.transfer_write %8, %o[%base], %mask {in_bounds = [true]} : vector<256xf32>, memref<?xf32>
  }
  return
}

// layer norm of 1024 columns, one row a workgroup: the reduction crosses warps
func.func @layer_norm(%x: memref<?x1024xf32>, %g: memref<1024xf32>, %b: memref<1024xf32>, %o: memref<?x1024xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 1024], [1024], [1024]], xt.result_dims = [["d0", 1024]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 1024.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  scf.forall (%i) in (%d0) {
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true]} : memref<?x1024xf32>, vector<1024xf32>
    %gv = vector.transfer_read %g[%c0], %zero {in_bounds = [true]} : memref<1024xf32>, vector<1024xf32>
    %bv = vector.transfer_read %b[%c0], %zero {in_bounds = [true]} : memref<1024xf32>, vector<1024xf32>
    %sum = vector.multi_reduction <add>, %a, %zero [0] : vector<1024xf32> to f32
    %mean = arith.divf %sum, %n : f32
    %mv = vector.broadcast %mean : f32 to vector<1024xf32>
    %d = arith.subf %a, %mv : vector<1024xf32>
    %sq = arith.mulf %d, %d : vector<1024xf32>
    %ssq = vector.multi_reduction <add>, %sq, %zero [0] : vector<1024xf32> to f32
    %var = arith.divf %ssq, %n : f32
    %ve = arith.addf %var, %eps : f32
    %rs = math.rsqrt %ve : f32
    %rv = vector.broadcast %rs : f32 to vector<1024xf32>
    %h = arith.mulf %d, %rv : vector<1024xf32>
    %hg = arith.mulf %h, %gv : vector<1024xf32>
    %r = arith.addf %hg, %bv : vector<1024xf32>
    vector.transfer_write %r, %o[%i, %c0] {in_bounds = [true]} : vector<1024xf32>, memref<?x1024xf32>
  }
  return
}

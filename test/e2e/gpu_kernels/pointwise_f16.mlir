// o = x * s + b with a row vector b: a broadcast along rows, static even width, no masks inside a row
func.func @pointwise_f16(%x: memref<?x512xf16>, %b: memref<512xf16>, %o: memref<?x512xf16>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 512], [512]], xt.result_dims = [["d0", 512]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %blocks = arith.ceildivui %d0, %c4 : index
  scf.forall (%i) in (%blocks) {
    %row = arith.muli %i, %c4 : index
    %left = arith.subi %d0, %row : index
    %mask = vector.create_mask %left, %c512 : vector<4x512xi1>
    %a = vector.transfer_read %x[%row, %c0], %pad, %mask {in_bounds = [true, true]} : memref<?x512xf16>, vector<4x512xf16>
    %v = vector.transfer_read %b[%c0], %pad {in_bounds = [true]} : memref<512xf16>, vector<512xf16>
    %vb = vector.broadcast %v : vector<512xf16> to vector<4x512xf16>
    %two = arith.constant dense<2.0> : vector<4x512xf16>
    %p = arith.mulf %a, %two : vector<4x512xf16>
    %s = arith.addf %p, %vb : vector<4x512xf16>
    vector.transfer_write %s, %o[%row, %c0], %mask {in_bounds = [true, true]} : vector<4x512xf16>, memref<?x512xf16>
  }
  return
}
